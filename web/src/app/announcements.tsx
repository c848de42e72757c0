import { Alert, Stack, Text } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { announcementsQuery, textFor } from '../api/notices'
import { IconAlert, IconAnnouncement } from '../ui/icons'

/** What everyone should know now, until whoever has read it puts it away in this browser. */
export function Announcements() {
  const { t } = useTranslation()
  const { data = [] } = useQuery(announcementsQuery('now'))
  const [read, setRead] = useLocalStorage<readonly number[]>({
    key: 'berth.read-announcements',
    defaultValue: [],
    getInitialValueInEffect: false,
  })
  const shown = data.filter(({ id }) => !read.includes(id))
  if (shown.length === 0) return null
  // Of those that are over nothing need be remembered.
  const putAway = (id: number) => setRead([...read.filter((one) => data.some((now) => now.id === one)), id])
  return (
    <Stack gap="xs" mb="md">
      {shown.map(({ id, level, text }) => (
        <Alert
          key={id}
          role="note"
          color={level === 'warning' ? 'yellow' : 'blue'}
          icon={level === 'warning' ? <IconAlert /> : <IconAnnouncement />}
          withCloseButton
          closeButtonLabel={t('put_away')}
          onClose={() => putAway(id)}
        >
          <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
            {textFor(text)}
          </Text>
        </Alert>
      ))}
    </Stack>
  )
}
