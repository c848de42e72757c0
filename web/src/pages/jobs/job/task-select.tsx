import { Group, Select } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import type { Job } from '../../../api/types'

/** The task that the address names, or the first; undefined before there are any. */
export function useTask(job: Job): string | undefined {
  const { task } = useSearch({ strict: false })
  const names = job.tasks.map((one) => `${one.role}/${one.index}`)
  return task !== undefined && names.includes(task) ? task : names[0]
}

/** Which of the job's tasks is looked at; it stands in the address. */
export function TaskSelect({ job, task }: { job: Job; task: string | undefined }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  if (job.tasks.length < 2) return null
  return (
    <Group>
      <Select
        label={t('logs.task')}
        size="xs"
        allowDeselect={false}
        data={job.tasks.map((one) => `${one.role}/${one.index}`)}
        value={task}
        onChange={(chosen) =>
          void navigate({
            to: '.',
            search: (before) => ({ ...before, task: chosen ?? undefined }),
            replace: true,
          })
        }
      />
    </Group>
  )
}
