import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { CopyField } from './copy'

/** The command with the same effect as the form beside it. */
export function ShowAsCommand({ command }: { command: string }) {
  const { t } = useTranslation()
  return (
    <Stack gap={4}>
      <Text size="sm" c="dimmed">
        {t('as_command')}
      </Text>
      <CopyField block text={command} label={t('copy_command')} />
    </Stack>
  )
}
