import { Group, Stack, Text } from '@mantine/core'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import { QueueWords } from '../../app/queue-words'
import type { EndCause, Job } from '../../api/types'
import { StateBadge } from '../../ui/state-badge'
import { look } from '../instances/state'

export interface End {
  cause: EndCause
  exit_code?: number | null
  message?: string
  task?: string | null
  by?: string | null
}

/** How something came to its end, and what to do about it. */
export function endText(end: End, t: TFunction<'jobs'>): string {
  const code = end.exit_code ?? 0
  const values = { code, signal: code - 128, message: end.message ?? '' }
  const parts = [
    end.task ? t('end.task', { task: end.task }) : '',
    t(`cause.${end.cause}`, values),
    end.by ? t('end.by', { by: end.by }) : '',
  ]
  return parts.filter((part) => part !== '').join(t('end.joint'))
}

export function JobState({ job, inLine }: { job: Job; inLine?: boolean }) {
  const { t } = useTranslation('jobs')
  const badge = <StateBadge {...look(job.status.state)} label={t(`state.${job.status.state}`)} />
  const more = (
    <>
      {job.queue && <QueueWords place={job.queue} />}
      {job.ended && job.ended.cause !== 'succeeded' && (
        <Text size="xs" c="dimmed" maw={420} className="breakable">
          {endText(job.ended, t)}
        </Text>
      )}
    </>
  )
  return inLine ? (
    <Group gap="sm">
      {badge}
      {more}
    </Group>
  ) : (
    <Stack gap={6} align="flex-start">
      {badge}
      {more}
    </Stack>
  )
}
