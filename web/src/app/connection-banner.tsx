import { Alert, Button, Group, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { IconAlert } from '../ui/icons'
import { formatDuration } from '../util/format'
import { useLive, useLiveState } from './live-context'
import { useNow } from './use-now'

/** Says that what is shown may be old, and how old. */
export function ConnectionBanner() {
  const { t, i18n } = useTranslation()
  const live = useLive()
  const lost = useLiveState() === 'lost'
  const now = useNow(lost)
  if (!lost) return null
  const age = formatDuration(Math.max(0, now - live.lastHeard()) / 1000, i18n.language)
  return (
    <Alert color="yellow" variant="light" icon={<IconAlert />} mb="md">
      <Group justify="space-between" gap="xs">
        <div>
          <Text role="status" fw={600} size="sm">
            {t('connection.lost')}
          </Text>
          <Text size="sm" className="numbers">
            {t('connection.age', { age })}
          </Text>
        </div>
        <Button size="xs" variant="default" onClick={() => live.reconnect()}>
          {t('connection.try')}
        </Button>
      </Group>
    </Alert>
  )
}
