import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { AuditList } from '../../app/audit-list'

/** What was done in one's own name: also the place to notice that somebody else did. */
export function ActivitySection() {
  const { t } = useTranslation('settings')
  return (
    <Stack>
      <Text c="dimmed">{t('activity.text')}</Text>
      <AuditList whose="own" filter={{}} />
    </Stack>
  )
}
