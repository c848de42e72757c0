import { Anchor, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { QueueWords } from '../../app/queue-words'
import { Trouble } from '../../app/trouble'
import { everyonesInstancesQuery } from '../../api/instances'
import { jobsQuery } from '../../api/jobs'
import type { Instance, Job, QueuePlace } from '../../api/types'
import { EmptyState } from '../../ui/empty-state'
import { IconQueue } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { paths } from '../../util/path-builder'

interface Waiting {
  id: string
  kind: 'job' | 'instance'
  name: string
  user: string
  since: string
  path: string
  place: QueuePlace
}

/** The tasks of a job wait with their job. */
function waitingOf(jobs: Job[], instances: Instance[]): Waiting[] {
  const found = [
    ...jobs.map((job) => ({ ...job, kind: 'job' as const, path: paths.job(job.id) })),
    ...instances
      .filter((instance) => !instance.job)
      .map((instance) => ({ ...instance, kind: 'instance' as const, path: paths.instance(instance.id) })),
  ]
  return found
    .flatMap(({ id, kind, name, user, created_at: since, path, queue }) =>
      queue ? [{ id, kind, name, user, since, path, place: queue }] : [],
    )
    .toSorted((a, b) => a.place.position - b.place.position)
}

/** Who waits, in which order and why: one's own, and for those who oversee others, theirs too. */
export function QueuePage() {
  const { t } = useTranslation('jobs')
  const jobs = useQuery({ ...jobsQuery('everyones'), refetchInterval: 10_000 })
  const instances = useQuery(everyonesInstancesQuery)
  const error = jobs.error ?? instances.error
  const ready = jobs.data && instances.data
  const waiting = ready ? waitingOf(jobs.data, instances.data) : []
  const again = () => {
    void jobs.refetch()
    void instances.refetch()
  }
  return (
    <Stack>
      <PageTitle>{t('queue.title')}</PageTitle>
      {error && <Trouble error={error} onRetry={again} />}
      {!ready && !error && <LoadingRows />}
      {ready && waiting.length === 0 && (
        <EmptyState
          icon={<IconQueue size={48} stroke={1.25} />}
          title={t('queue.empty')}
          text={t('queue.empty_text')}
          action={null}
        />
      )}
      {waiting.length > 0 && (
        <Records
          label={t('queue.title')}
          rows={waiting}
          rowId={(one) => one.id}
          heading="name"
          columns={[
            {
              id: 'name',
              header: t('column.name'),
              cell: (one) => (
                <Anchor component={Link} to={one.path} fw={600} className="breakable">
                  {one.name}
                </Anchor>
              ),
            },
            {
              id: 'kind',
              header: t('queue.kind'),
              cell: (one) => <Text size="sm">{t(`queue.${one.kind}`)}</Text>,
            },
            { id: 'user', header: t('column.user'), cell: (one) => <Text size="sm">{one.user}</Text> },
            { id: 'why', header: t('queue.why'), cell: (one) => <QueueWords place={one.place} /> },
            { id: 'since', header: t('queue.since'), cell: (one) => <TimeAgo at={one.since} /> },
          ]}
        />
      )}
    </Stack>
  )
}
