import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { AuditList } from '../../../app/audit-list'
import type { Instance } from '../../../api/types'
import { StartSteps } from './start-steps'

/** What was done with the instance, newest first. */
export function EventsTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  return (
    <Stack>
      <StartSteps instance={instance} />
      <Text size="sm" c="dimmed">
        {t('events.text')}
      </Text>
      <AuditList whose="own" about filter={{ object: instance.id }} />
    </Stack>
  )
}
