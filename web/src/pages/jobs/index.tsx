import { Anchor, Button, Group, Stack, Switch, Text } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Filtered } from '../../app/filtered'
import { Trouble } from '../../app/trouble'
import { useNow } from '../../app/use-now'
import { type SortSearch, useSort } from '../../app/use-sort'
import { jobsQuery } from '../../api/jobs'
import { meQuery } from '../../api/session'
import type { Job } from '../../api/types'
import { EmptyState } from '../../ui/empty-state'
import { IconJobs, IconPlus } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import type { FilterSearch } from '../../util/filter'
import { formatDuration } from '../../util/format'
import { paths } from '../../util/path-builder'
import { JobActions } from './actions'
import { JobState } from './state'

export interface JobsSearch extends SortSearch, FilterSearch {
  /** Those of everybody, as far as one oversees them. */
  all?: boolean
}

export function JobsPage() {
  const { t } = useTranslation('jobs')
  const { all = false } = useSearch({ strict: false })
  const { data: me } = useSuspenseQuery(meQuery)
  const { data, error, isPending, refetch } = useQuery(jobsQuery(all ? 'everyones' : 'own'))
  const empty = data?.length === 0
  return (
    <Stack>
      <Group justify="space-between">
        <PageTitle>{t('title')}</PageTitle>
        <Group>
          {me.role !== 'user' && <EveryonesSwitch all={all} />}
          {!empty && <SubmitButton />}
        </Group>
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {empty && (
        <EmptyState
          icon={<IconJobs size={48} stroke={1.25} />}
          title={t('empty.title')}
          text={t('empty.text')}
          action={<SubmitButton />}
        />
      )}
      {data && !empty && <JobRecords jobs={data} all={all} />}
    </Stack>
  )
}

function EveryonesSwitch({ all }: { all: boolean }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  return (
    <Switch
      label={t('everyones')}
      checked={all}
      onChange={(event) => {
        const { checked } = event.currentTarget
        void navigate({
          to: '.',
          search: (before) => ({ ...before, all: checked || undefined }),
          replace: true,
        })
      }}
    />
  )
}

function SubmitButton() {
  const { t } = useTranslation('jobs')
  return (
    <Button component={Link} to={paths.newJob()} leftSection={<IconPlus size={18} />}>
      {t('submit')}
    </Button>
  )
}

/** How long it ran, or has run so far. */
function runSeconds({ started_at, ended_at }: Job, now: number): number | null {
  if (!started_at) return null
  const end = ended_at ? new Date(ended_at).getTime() : now
  return Math.max(0, (end - new Date(started_at).getTime()) / 1000)
}

function RunTime({ job }: { job: Job }) {
  const { t, i18n } = useTranslation('jobs')
  const now = useNow(Boolean(job.started_at) && !job.ended_at)
  const seconds = runSeconds(job, now)
  return (
    <Text size="sm" className="numbers">
      {seconds === null ? t('not_yet') : formatDuration(seconds, i18n.language)}
    </Text>
  )
}

interface RecordsProps {
  jobs: Job[]
  /** Those of everybody. */
  all: boolean
}

const textOf = ({ name, user, roles }: Job) => [name, user, ...roles.map(({ image }) => image)].join(' ')

/** Jobs, as far as they are asked for. */
export function JobRecords({ jobs, all }: RecordsProps) {
  const { t } = useTranslation('jobs')
  return (
    <Filtered
      rows={jobs}
      label={t('find')}
      text={textOf}
      state={(job) => job.status.state}
      stateLabel={(state) => t(`state.${state}`, { defaultValue: state })}
      user={all ? (job) => job.user : undefined}
    >
      {(shown) => <JobRows jobs={shown} all={all} />}
    </Filtered>
  )
}

function JobRows({ jobs, all }: RecordsProps) {
  const { t } = useTranslation('jobs')
  const sorting = useSort()
  return (
    <Records
      label={t('title')}
      rows={jobs}
      rowId={(job) => job.id}
      heading="name"
      {...sorting}
      columns={[
        {
          id: 'name',
          header: t('column.name'),
          cell: (job) => (
            <Anchor component={Link} to={paths.job(all ? job.id : job)} fw={600} className="breakable">
              {job.name}
            </Anchor>
          ),
          sortBy: (job) => job.name,
        },
        {
          id: 'state',
          header: t('column.state'),
          cell: (job) => <JobState job={job} />,
          sortBy: (job) => job.status.state,
        },
        {
          id: 'submitted',
          header: t('column.submitted'),
          cell: (job) => <TimeAgo at={job.created_at} />,
          sortBy: (job) => job.created_at,
        },
        {
          id: 'user',
          header: t('column.user'),
          cell: (job) => <Text size="sm">{job.user}</Text>,
          sortBy: (job) => job.user,
        },
        {
          id: 'ran',
          header: t('column.ran'),
          cell: (job) => <RunTime job={job} />,
          sortBy: (job) => runSeconds(job, Date.now()) ?? 0,
        },
        {
          id: 'cluster',
          header: t('column.cluster'),
          cell: (job) => <Text size="sm">{job.cluster}</Text>,
          sortBy: (job) => job.cluster ?? '',
        },
        {
          id: 'tasks',
          header: t('column.tasks'),
          cell: (job) => <JobSize job={job} />,
        },
      ]}
      actions={(job) => <JobActions job={job} compact />}
    />
  )
}

function JobSize({ job }: { job: Job }) {
  const { t } = useTranslation(['jobs', 'instances'])
  const tasks = job.roles.reduce((sum, role) => sum + role.tasks, 0)
  const gpus = job.roles.reduce((sum, role) => sum + role.tasks * role.gpus, 0)
  return (
    <Text size="sm" className="numbers">
      {t('tasks', { count: tasks })}
      {gpus > 0 && ` · ${t('instances:resources.gpus', { count: gpus })}`}
    </Text>
  )
}
