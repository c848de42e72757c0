import { Group, Select, Stack, Text } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { LogPanel } from '../../../app/log-panel'
import { useWhyNotJob } from '../../../app/why-not'
import type { Job } from '../../../api/types'
import { TaskSelect, useTask } from './task-select'

/** The output of each task in each try, kept after its machine is gone. */
export function JobLogsTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const task = useTask(job)
  const reason = useWhyNotJob(job)('logs')
  const { attempt: asked = job.attempt } = useSearch({ strict: false })
  const attempt = Math.min(asked, job.attempt)
  const source = useMemo(
    () => (task === undefined ? null : { job: job.id, task, attempt }),
    [job.id, attempt, task],
  )
  if (source === null) return <Text>{t('logs.not_yet')}</Text>
  if (reason !== undefined) return <Text>{reason}</Text>
  const writing = !job.ended && attempt === job.attempt
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group>
        <TaskSelect job={job} task={task} />
        <AttemptSelect last={job.attempt} attempt={attempt} />
      </Group>
      <LogPanel
        key={`${job.id}/${attempt}/${task}/${writing}`}
        source={source}
        writing={writing}
        label={t('logs.label', { name: job.name })}
        file={`${job.slug}-${(task ?? '').replaceAll('/', '-')}-${attempt}.log`}
      />
    </Stack>
  )
}

/** Which try is looked at; it stands in the address. */
function AttemptSelect({ last, attempt }: { last: number; attempt: number }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  if (last < 2) return null
  const label = (number: number) => (number === last ? t('logs.attempt_last', { number }) : String(number))
  return (
    <Select
      label={t('logs.attempt')}
      size="xs"
      allowDeselect={false}
      data={Array.from({ length: last }, (_, index) => ({
        value: String(last - index),
        label: label(last - index),
      }))}
      value={String(attempt)}
      onChange={(chosen) =>
        void navigate({
          to: '.',
          search: (before) => ({
            ...before,
            attempt: Number(chosen) === last ? undefined : Number(chosen),
            line: undefined,
          }),
          replace: true,
        })
      }
    />
  )
}
