import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { CopyField } from './copy'
import { IconAlert, IconRestart } from './icons'

interface Props {
  what: string
  why?: string
  hint?: string
  details?: string
  requestId?: string
  onRetry?: () => void
}

/** An error in full: what, why, what to do, and the id by which an administrator finds it in the log. */
export function ErrorPanel({ what, why, hint, details, requestId, onRetry }: Props) {
  const { t } = useTranslation(['errors', 'common'])
  return (
    <Alert role="alert" color="red" icon={<IconAlert />} title={what} variant="outline">
      <Stack gap={6} align="flex-start">
        {why && <Text size="sm">{why}</Text>}
        {hint && <Text size="sm">{hint}</Text>}
        {details && (
          <Text size="xs" c="dimmed" className="breakable">
            {t('details', { message: details })}
          </Text>
        )}
        {requestId && <RequestId id={requestId} />}
        {onRetry && (
          <Button
            variant="default"
            size="xs"
            leftSection={<IconRestart size={16} />}
            onClick={onRetry}
            mt={4}
          >
            {t('common:retry')}
          </Button>
        )}
      </Stack>
    </Alert>
  )
}

export function RequestId({ id }: { id: string }) {
  const { t } = useTranslation(['errors', 'common'])
  return (
    <Group gap={6}>
      <Text size="xs" c="dimmed">
        {t('request_id')}
      </Text>
      <CopyField text={id} label={t('copy_request_id')} />
    </Group>
  )
}
