import { Stack, Text } from '@mantine/core'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { LogPanel } from '../../../app/log-panel'
import type { Job } from '../../../api/types'
import { TaskSelect, useTask } from './task-select'

/** The output of each task, kept after its machine is gone. */
export function JobLogsTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const task = useTask(job)
  const source = useMemo(
    () => (task === undefined ? null : { job: job.id, task, attempt: job.attempt }),
    [job.id, job.attempt, task],
  )
  if (source === null || !job.actions.includes('logs')) return <Text>{t('logs.not_yet')}</Text>
  const writing = !job.ended
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <TaskSelect job={job} task={task} />
      <LogPanel
        key={`${job.id}/${job.attempt}/${task}/${writing}`}
        source={source}
        writing={writing}
        label={t('logs.label', { name: job.name })}
        file={`${job.slug}-${(task ?? '').replaceAll('/', '-')}.log`}
      />
    </Stack>
  )
}
