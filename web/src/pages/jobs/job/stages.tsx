import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { endText } from '../../../app/end-text'
import { QueueWords } from '../../../app/queue-words'
import { useNow } from '../../../app/use-now'
import { jobEventsQuery } from '../../../api/jobs'
import type { Job, JobEventAt, JobTask } from '../../../api/types'
import { type Step, Steps } from '../../../ui/steps'
import { Transfer } from '../../../ui/transfer'

const STAGES = ['wait', 'prepare', 'run', 'end'] as const
type Stage = (typeof STAGES)[number]

/** When each stage of the last try began. */
export function stageTimes(events: readonly JobEventAt[]): Partial<Record<Stage, number>> {
  const times: Partial<Record<Stage, number>> = {}
  for (const { event, at } of events) {
    const time = new Date(at).getTime()
    if (event === 'submitted') times.wait = time
    if (event === 'retried') Object.assign(times, { wait: time, prepare: undefined, run: undefined })
    if (event === 'started') times.prepare = time
    if (event === 'begun') times.run = time
    if (event === 'ended') times.end = time
  }
  return times
}

/** How far each stage is. The one that was under way when the job failed is the failed one, never the end itself. */
export function stageStates(
  times: Partial<Record<Stage, number>>,
  failed: boolean,
): Record<Stage, Step['state']> {
  const begun = (stage: Stage) => times[stage] !== undefined
  const over = begun('end')
  // What comes after it was never reached, also when somebody stopped the job before.
  const last = STAGES.slice(0, -1).findLastIndex(begun)
  const state = (stage: Stage, index: number): Step['state'] => {
    if (stage === 'end') return over ? 'done' : 'next'
    if (index !== last) return index < last ? 'done' : 'next'
    if (!over) return 'now'
    return failed ? 'failed' : 'done'
  }
  return {
    wait: state('wait', 0),
    prepare: state('prepare', 1),
    run: state('run', 2),
    end: state('end', 3),
  }
}

/** From the queue to the end, each stage with its clock. */
export function JobStages({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const { data: events } = useQuery(jobEventsQuery(job.id))
  const now = useNow(!job.ended)
  if (!events) return null
  const times = stageTimes(events)
  const states = stageStates(times, job.status.state === 'failed')
  const steps = STAGES.map((stage, index): Step => {
    const begun = times[stage]
    const next = STAGES.slice(index + 1).flatMap((later) => times[later] ?? [])[0]
    const state = states[stage]
    const seconds = begun === undefined ? undefined : ((next ?? now) - begun) / 1000
    return {
      key: stage,
      label: t(`stage.${stage}`),
      state,
      ...(stage !== 'end' && { seconds }),
      ...(state === 'now' && { detail: <Detail job={job} stage={stage} seconds={seconds} /> }),
      ...(state === 'failed' &&
        job.ended && { detail: <Text size="xs">{endText({ ...job.ended, task: null }, t)}</Text> }),
    }
  })
  return <Steps label={t('stage.label')} steps={steps} />
}

function Detail({ job, stage, seconds }: { job: Job; stage: Stage; seconds?: number }) {
  if (stage === 'wait' && job.queue)
    return <QueueWords place={job.queue} work={{ kind: 'job', id: job.id }} />
  if (stage === 'prepare')
    return job.tasks.map((task) => <Pull key={task.name} task={task} seconds={seconds} />)
  return null
}

function Pull({ task: { name, status }, seconds }: { task: JobTask; seconds?: number }) {
  const { t } = useTranslation('instances')
  if (status.state !== 'pulling') return null
  return (
    <Transfer
      label={t('progress.label', { name })}
      done={status.done_bytes}
      total={status.total_bytes ?? null}
      seconds={seconds}
    />
  )
}
