import { Group, Stack, Text, Timeline } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { jobEventsQuery } from '../../../api/jobs'
import type { Job, JobEventAt } from '../../../api/types'
import { LoadingRows } from '../../../ui/loading'
import { TimeAgo } from '../../../ui/time-ago'
import { never } from '../../../util/never'
import { endText } from '../../../app/end-text'

export function JobEventsTab({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const { data, error, isPending, refetch } = useQuery(jobEventsQuery(job.id))
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={3} height={32} />}
      {data && (
        <Timeline bulletSize={14} lineWidth={2} active={data.length - 1}>
          {data.map((event) => (
            <Timeline.Item key={`${event.event}${event.at}`}>
              <Group gap="sm">
                <Text size="sm" fw={600}>
                  {eventText(event, t)}
                </Text>
                <TimeAgo at={event.at} />
              </Group>
            </Timeline.Item>
          ))}
        </Timeline>
      )}
    </Stack>
  )
}

function eventText(event: JobEventAt, t: TFunction<'jobs'>): string {
  switch (event.event) {
    case 'submitted':
    case 'pulling':
    case 'creating':
    case 'begun':
      return t(`event.${event.event}`)
    case 'started':
      return t('event.started', { attempt: event.attempt })
    case 'retried':
      return t('event.retried', { end: endText(event.end, t) })
    case 'ended':
      return t('event.ended', { end: endText(event.end, t) })
    case 'changed':
      return t('event.changed', { by: event.by })
    case 'stop_asked':
      return t('event.stop_asked', { by: event.by })
    default:
      return never(event)
  }
}
