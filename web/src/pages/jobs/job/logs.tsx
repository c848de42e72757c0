import { Group, Select, Stack, Text } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { LogPanel } from '../../../app/log-panel'
import type { Job } from '../../../api/types'

/** The output of each task, kept after its machine is gone. */
export function JobLogsTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  const names = job.tasks.map((task) => `${task.role}/${task.index}`)
  const { task: asked } = useSearch({ strict: false })
  const task = asked !== undefined && names.includes(asked) ? asked : names[0]
  const source = useMemo(
    () => (task === undefined ? null : { job: job.id, task, attempt: job.attempt }),
    [job.id, job.attempt, task],
  )
  if (source === null || !job.actions.includes('logs')) return <Text>{t('logs.not_yet')}</Text>
  const writing = !job.ended
  return (
    <Stack gap="xs" flex={1} mih={0}>
      {names.length > 1 && (
        <Group>
          <Select
            label={t('logs.task')}
            size="xs"
            allowDeselect={false}
            data={names}
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
      )}
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
