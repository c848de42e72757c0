// Errors on their way to the screen: every one passes the translator, none is shown raw.

import { Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import i18next from 'i18next'
import { useTranslation } from 'react-i18next'

import { problemText } from '../api/problem-text'
import { ErrorPanel, RequestId } from '../ui/error-panel'

interface Props {
  error: unknown
  onRetry?: () => void
}

export function Trouble({ error, onRetry }: Props) {
  const { t } = useTranslation(['errors', 'instances', 'jobs'])
  return <ErrorPanel {...problemText(error, t)} onRetry={onRetry} />
}

/** For errors of something that was asked for in passing, with no place of their own on the page. */
export function showTrouble(error: unknown) {
  const { what, why, hint, requestId } = problemText(
    error,
    i18next.getFixedT(null, ['errors', 'instances', 'jobs']),
  )
  notifications.show({
    color: 'red',
    title: what,
    message: (
      <Stack gap={4} align="flex-start">
        {why && <Text size="sm">{why}</Text>}
        {hint && <Text size="sm">{hint}</Text>}
        {requestId && <RequestId id={requestId} />}
      </Stack>
    ),
    autoClose: 15_000,
    role: 'alert',
    closeButtonProps: { 'aria-label': i18next.t('close') },
  })
}

export function showDone(message: string) {
  notifications.show({
    message,
    role: 'status',
    closeButtonProps: { 'aria-label': i18next.t('close') },
  })
}
