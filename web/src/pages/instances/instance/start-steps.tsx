import { useTranslation } from 'react-i18next'

import { QueueWords } from '../../../app/queue-words'
import { useNow } from '../../../app/use-now'
import { seenOf } from '../../../api/start-clock'
import type { Instance } from '../../../api/types'
import { Section } from '../../../ui/section'
import { type Step, Steps } from '../../../ui/steps'
import { Transfer } from '../../../ui/transfer'

const STATES = ['waiting', 'pulling', 'starting', 'running'] as const
type State = (typeof STATES)[number]

const isStart = (state: string): state is State => STATES.some((one) => one === state)

/** How far a start is: asked for, room found, image there, container begun, ready. */
export function StartSteps({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { state } = instance.status
  const under = isStart(state) && state !== 'running'
  const now = useNow(under)
  if (!under) return null
  const seen = seenOf(instance.id)
  const at = STATES.indexOf(state)
  const steps = STATES.map((one, index): Step => {
    const begun = seen[one]
    const ended = STATES.slice(index + 1).flatMap((later) => seen[later] ?? [])[0]
    return {
      key: one,
      label: t(`start_step.${one}`),
      state: index < at ? 'done' : index === at ? 'now' : 'next',
      ...(begun !== undefined && index <= at && { seconds: ((ended ?? now) - begun) / 1000 }),
      ...(index === at && { detail: <Detail instance={instance} /> }),
    }
  })
  const asked: Step = { key: 'asked', label: t('start_step.asked'), state: 'done' }
  return (
    <Section title={t('start_step.title')}>
      <Steps label={t('start_step.title')} steps={[asked, ...steps]} />
    </Section>
  )
}

function Detail({ instance: { name, status, queue } }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  if (status.state === 'waiting' && queue) return <QueueWords place={queue} />
  if (status.state !== 'pulling') return null
  return (
    <Transfer
      label={t('progress.label', { name })}
      done={status.done_bytes}
      total={status.total_bytes ?? null}
    />
  )
}
