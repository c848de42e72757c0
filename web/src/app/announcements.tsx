import { Alert, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'

import { announcementsQuery, textFor } from '../api/notices'
import { IconAlert, IconAnnouncement } from '../ui/icons'

/** What everyone should know now. */
export function Announcements() {
  const { data } = useQuery(announcementsQuery('now'))
  if (!data || data.length === 0) return null
  return (
    <Stack gap="xs">
      {data.map(({ id, level, text }) => (
        <Alert
          key={id}
          role="note"
          color={level === 'warning' ? 'yellow' : 'blue'}
          icon={level === 'warning' ? <IconAlert /> : <IconAnnouncement />}
        >
          <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
            {textFor(text)}
          </Text>
        </Alert>
      ))}
    </Stack>
  )
}
