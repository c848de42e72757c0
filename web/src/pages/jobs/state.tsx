import { Group, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { endText } from '../../app/end-text'
import { QueueWords } from '../../app/queue-words'
import type { Job } from '../../api/types'
import { StateBadge } from '../../ui/state-badge'
import { HeldUp, look } from '../instances/state'

export function JobState({ job, inLine }: { job: Job; inLine?: boolean }) {
  const { t } = useTranslation('jobs')
  const badge = <StateBadge {...look(job.status.state)} label={t(`state.${job.status.state}`)} />
  const more = (
    <>
      {job.queue && <QueueWords place={job.queue} work={{ kind: 'job', id: job.id }} />}
      <HeldUp status={job.status} />
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
