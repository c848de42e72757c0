import { Progress, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { formatBytes, formatDuration } from '../util/format'
import { paceOf } from '../util/pace'

interface Props {
  label: string
  done: number
  total: number | null
  /** For how long it has been coming, where that is known. */
  seconds?: number
}

/** A download in bytes. Without a known total there is no bar: a made-up percentage would be a lie. */
export function Transfer({ label, done, total, seconds }: Props) {
  const { t, i18n } = useTranslation('instances')
  const pace = paceOf(done, total, seconds)
  const text =
    total === null
      ? t('progress.so_far', { done: formatBytes(done) })
      : t('progress.of', { done: formatBytes(done), total: formatBytes(total) })
  return (
    <Stack gap={4} miw={140}>
      {total !== null && total > 0 && (
        <Progress.Root size="sm">
          <Progress.Section value={Math.min(100, (100 * done) / total)} aria-label={label} />
        </Progress.Root>
      )}
      <Text size="xs" c="dimmed" className="numbers">
        {text}
        {pace && ` · ${t('progress.speed', { speed: formatBytes(pace.bytesPerSecond) })}`}
      </Text>
      {pace?.secondsLeft !== undefined && (
        <Text size="xs" c="dimmed" className="numbers">
          {t('progress.left', { time: formatDuration(pace.secondsLeft, i18n.language) })}
        </Text>
      )}
    </Stack>
  )
}
