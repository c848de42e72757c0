import { Group, Skeleton, Stack, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { jobQuery } from '../../../api/jobs'
import type { Job } from '../../../api/types'
import { PageTitle } from '../../../ui/page-title'
import { useShownTab } from '../../../ui/use-shown-tab'
import type { MetricsRange } from '../../../util/metrics-range'
import { never } from '../../../util/never'
import { isJobTab, JOB_TABS, type JobTab, paths } from '../../../util/path-builder'
import { JobActions } from '../actions'
import { JobState } from '../state'
import { JobEventsTab } from './events'
import { JobFileTab } from './file'
import { JobLogsTab } from './logs'
import { JobMetricsTab } from './metrics'
import { JobOverviewTab } from './overview'

export interface JobTabSearch {
  /** Whose output, as `role/index`. */
  task?: string
  /** Which try, from 1; the last without it. */
  attempt?: number
  find?: string
  line?: number
  range?: MetricsRange
}

export function JobPage({ name, tab }: { name: string; tab: JobTab }) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  const { data: job, error, isPending, refetch } = useQuery(jobQuery(name))
  const title = job?.name ?? name
  const list = useShownTab(job ? tab : '')
  const choose = (chosen: string | null) => {
    if (chosen && isJobTab(chosen)) void navigate({ to: paths.job(name, chosen) })
  }
  return (
    <Stack
      gap="sm"
      h={tab === 'logs' ? 'calc(100dvh - 56px - 2 * var(--app-shell-padding))' : undefined}
      mih={420}
    >
      <Group justify="space-between" gap="sm">
        <Group gap="sm">
          <PageTitle tab={job ? `${t(`state.${job.status.state}`)} · ${title}` : title}>{title}</PageTitle>
          {job && (
            <div aria-live="polite">
              <JobState job={job} inLine />
            </div>
          )}
        </Group>
        {job && <JobActions job={job} onDeleted={() => void navigate({ to: paths.jobs() })} />}
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <Skeleton className="after-a-moment" height={240} />}
      {job && (
        <Tabs
          value={tab}
          onChange={choose}
          activateTabWithKeyboard={false}
          keepMounted={false}
          display="flex"
          flex={1}
          mih={0}
          style={{ flexDirection: 'column' }}
        >
          <Tabs.List
            ref={list}
            aria-label={t('tab.label', { name: title })}
            mb="sm"
            className="scrolling-tabs"
          >
            {JOB_TABS.map((value) => (
              <Tabs.Tab key={value} value={value}>
                {t(`tab.${value}`)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value={tab} display="flex" flex={1} mih={0} style={{ flexDirection: 'column' }}>
            <TabContent job={job} tab={tab} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Stack>
  )
}

function TabContent({ job, tab }: { job: Job; tab: JobTab }) {
  switch (tab) {
    case 'overview':
      return <JobOverviewTab job={job} />
    case 'logs':
      return <JobLogsTab job={job} />
    case 'metrics':
      return <JobMetricsTab job={job} />
    case 'events':
      return <JobEventsTab job={job} />
    case 'file':
      return <JobFileTab job={job} />
    default:
      return never(tab)
  }
}
