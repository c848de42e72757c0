import { useTranslation } from 'react-i18next'

import { QueueWords } from '../../../app/queue-words'
import { useNow } from '../../../app/use-now'
import type { Instance } from '../../../api/types'
import { Section } from '../../../ui/section'
import { type Step, Steps } from '../../../ui/steps'
import { Transfer } from '../../../ui/transfer'

const STATES = ['waiting', 'pulling', 'starting', 'running'] as const
type State = (typeof STATES)[number]

const isStart = (state: string): state is State => STATES.some((one) => one === state)

const timeOf = (at: string | null | undefined) => (at ? new Date(at).getTime() : undefined)

/** How far a start is, or how it went: asked for, room found, image there, container begun, ready. */
export function StartSteps({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { status, start_times: times = {} } = instance
  const now = useNow(isStart(status.state) && status.state !== 'running')
  const failed = timeOf(times.failed)
  const reached = STATES.findLastIndex((one) => times[one])
  const steps = STATES.map((one, index): Step => {
    const begun = timeOf(times[one])
    const ended = STATES.slice(index + 1).flatMap((later) => timeOf(times[later]) ?? [])[0] ?? failed
    const last = index === reached
    const goesOn = last && status.state === one && one !== 'running'
    const seconds = begun === undefined ? undefined : Math.max(0, (ended ?? now) - begun) / 1000
    return {
      key: one,
      label: t(`start_step.${one}`),
      state:
        last && failed !== undefined && one !== 'running'
          ? 'failed'
          : goesOn
            ? 'now'
            : index <= reached
              ? 'done'
              : 'next',
      ...(one !== 'running' && (goesOn || ended !== undefined) && { seconds }),
      ...(goesOn && { detail: <Detail instance={instance} seconds={seconds} /> }),
    }
  })
  const asked: Step = { key: 'asked', label: t('start_step.asked'), state: 'done' }
  return (
    <Section title={t('start_step.title')}>
      <Steps label={t('start_step.title')} steps={[asked, ...steps]} />
    </Section>
  )
}

/** Whether somebody waits for it, or wants to know why it did not start. */
export function isStarting({ status, start_times: times = {} }: Instance): boolean {
  return (
    (isStart(status.state) && status.state !== 'running') || (status.state === 'failed' && !times.running)
  )
}

function Detail({ instance, seconds }: { instance: Instance; seconds?: number }) {
  const { t } = useTranslation('instances')
  const { id, name, status, queue } = instance
  if (status.state === 'waiting' && queue) return <QueueWords place={queue} work={{ kind: 'instance', id }} />
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
