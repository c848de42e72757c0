import { Stack, Text } from '@mantine/core'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { MetricsPanel } from '../../../app/metrics-panel'
import type { Job } from '../../../api/types'
import { TaskSelect, useTask } from './task-select'

/** What each task used, also after its machine is gone. */
export function JobMetricsTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const task = useTask(job)
  const source = useMemo(
    () => (task === undefined ? null : { job: job.id, task, attempt: job.attempt }),
    [job.id, job.attempt, task],
  )
  if (source === null) return <Text>{t('metrics.not_yet')}</Text>
  const role = job.roles.find(({ name }) => source.task.startsWith(`${name}/`))
  return (
    <Stack>
      <TaskSelect job={job} task={task} />
      <MetricsPanel
        source={source}
        taking={!job.ended}
        end={job.ended_at ?? undefined}
        limits={{ cpus: role?.cpus, memoryBytes: role?.memory_bytes, gpus: role?.gpus ?? 0 }}
        file={`${job.slug}-${source.task.replaceAll('/', '-')}`}
      />
    </Stack>
  )
}
