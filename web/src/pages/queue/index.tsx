import { Anchor, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { QueueWords } from '../../app/queue-words'
import { Trouble } from '../../app/trouble'
import { queueQuery } from '../../api/queue'
import { clusterQuery } from '../../api/site'
import type { Queued } from '../../api/types'
import { EmptyState } from '../../ui/empty-state'
import { IconQueue } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Records } from '../../ui/records'
import { Resources } from '../../ui/resources'
import { TimeAgo } from '../../ui/time-ago'
import { formatBytes } from '../../util/format'
import { largestFree } from '../../util/free-blocks'
import { paths } from '../../util/path-builder'
import { Leave, Priority } from './acts'

/** Who waits, in which order and why: one's own in full, of the others what they ask for. */
export function QueuePage() {
  const { t } = useTranslation('jobs')
  const { data, error, isPending, refetch } = useQuery(queueQuery)
  return (
    <Stack>
      <PageTitle>{t('queue.title')}</PageTitle>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && <NothingWaits />}
      {data && data.length > 0 && <Line waiting={data} />}
    </Stack>
  )
}

function NothingWaits() {
  const { t } = useTranslation('jobs')
  const { data } = useQuery(clusterQuery)
  const free = data && largestFree(data.nodes)
  return (
    <EmptyState
      icon={<IconQueue size={48} stroke={1.25} />}
      title={t('queue.empty')}
      text={
        free
          ? t('queue.free_now', {
              cpus: free.cpus,
              memory: formatBytes(free.memoryBytes),
              gpus: free.gpus,
            })
          : t('queue.empty_text')
      }
      action={null}
    />
  )
}

function Line({ waiting }: { waiting: Queued[] }) {
  const { t } = useTranslation('jobs')
  return (
    <Records
      label={t('queue.title')}
      rows={waiting}
      rowId={({ work, kind, since, position }) => work?.id ?? `${kind} ${since} ${position}`}
      heading="name"
      columns={[
        {
          id: 'place',
          header: t('queue.place'),
          cell: ({ position }) => (
            <Text size="sm" className="numbers">
              {position === 0 ? t('queue.never') : position}
            </Text>
          ),
        },
        { id: 'name', header: t('column.name'), cell: (one) => <Name queued={one} /> },
        { id: 'ask', header: t('queue.ask'), cell: (one) => <Resources asked={one} /> },
        {
          id: 'why',
          header: t('queue.why'),
          cell: ({ kind, work }) =>
            work ? (
              <QueueWords place={work.queue} work={{ kind, id: work.id }} bare />
            ) : (
              <Text size="xs" c="dimmed">
                {t('queue.not_shown')}
              </Text>
            ),
        },
        { id: 'priority', header: t('overview.priority'), cell: (one) => <Priority queued={one} /> },
        { id: 'since', header: t('queue.since'), cell: ({ since }) => <TimeAgo at={since} /> },
      ]}
      actions={({ kind, work }) => work && <Leave kind={kind} work={work} />}
    />
  )
}

function Name({ queued: { kind, work } }: { queued: Queued }) {
  const { t } = useTranslation('jobs')
  if (!work) {
    return (
      <Text size="sm" c="dimmed">
        {t(`queue.other_${kind}`)}
      </Text>
    )
  }
  const to = kind === 'job' ? paths.job(work.id) : paths.instance(work.id)
  return (
    <Stack gap={0}>
      <Anchor component={Link} to={to} fw={600} className="breakable">
        {work.name}
      </Anchor>
      <Group gap={6}>
        <Text size="xs" c="dimmed">
          {t(`queue.${kind}`)}
        </Text>
        <Text size="xs" c="dimmed">
          {work.user}
        </Text>
      </Group>
    </Stack>
  )
}
