import { Group, Stack, Text } from '@mantine/core'
import type { ComponentProps } from 'react'
import { useTranslation } from 'react-i18next'

import { endText } from '../../app/end-text'
import { QueueWords } from '../../app/queue-words'
import type { Instance, InstanceStatus } from '../../api/types'
import {
  IconAlert,
  IconCircleCheck,
  IconDownload,
  IconHourglass,
  IconLoader,
  IconPlay,
  IconStopped,
  IconTrash,
} from '../../ui/icons'
import { StateBadge } from '../../ui/state-badge'
import { Transfer } from '../../ui/transfer'
import { never } from '../../util/never'

export type Look = Omit<ComponentProps<typeof StateBadge>, 'label'>

export function look(state: InstanceStatus['state']): Look {
  switch (state) {
    case 'waiting':
      return { color: 'yellow', icon: IconHourglass }
    case 'pulling':
      return { color: 'blue', icon: IconDownload }
    case 'starting':
      return { color: 'blue', icon: IconLoader, turning: true }
    case 'running':
      return { color: 'green', icon: IconPlay }
    case 'stopping':
      return { color: 'orange', icon: IconLoader, turning: true }
    case 'stopped':
      return { color: 'gray', icon: IconStopped }
    case 'succeeded':
      return { color: 'teal', icon: IconCircleCheck }
    case 'failed':
      return { color: 'red', icon: IconAlert }
    case 'deleting':
      return { color: 'gray', icon: IconTrash }
    default:
      return never(state)
  }
}

/** The state with what one wants to know about it: how far, since when, why. */
export function InstanceState({ instance, inLine }: { instance: Instance; inLine?: boolean }) {
  const { t } = useTranslation('instances')
  const { status } = instance
  const badge = <StateBadge {...look(status.state)} label={t(`state.${status.state}`)} />
  const more = <StateDetail instance={instance} />
  return inLine ? (
    <Group gap="sm">
      {badge}
      {more}
    </Group>
  ) : (
    <Stack gap={6} align="flex-start">
      {badge}
      {more}
    </Stack>
  )
}

function StateDetail({ instance: { id, name, status, queue } }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { t: jobs } = useTranslation('jobs')
  switch (status.state) {
    case 'waiting':
      return queue ? (
        <QueueWords place={queue} work={{ kind: 'instance', id }} />
      ) : (
        <Because text={t(`waiting.${status.reason}`)} reason={status.reason} message={status.message} />
      )
    case 'pulling':
      return (
        <Transfer
          label={t('progress.label', { name })}
          done={status.done_bytes}
          total={status.total_bytes ?? null}
        />
      )
    case 'running':
      return null
    case 'stopped':
      return status.exit_code === null || status.exit_code === undefined ? null : (
        <Detail text={t('exit_code', { code: status.exit_code })} />
      )
    case 'failed':
      return (
        <Detail
          text={
            status.cause
              ? endText({ ...status, cause: status.cause, message: status.reason }, jobs)
              : status.reason
          }
        />
      )
    case 'stopping':
    case 'deleting':
      return <HeldUp status={status} />
    case 'starting':
    case 'succeeded':
      return null
    default:
      return never(status)
  }
}

/** Why a stop or a deletion does not go on for now. */
export function HeldUp({ status }: { status: InstanceStatus }) {
  const { t } = useTranslation('instances')
  if ((status.state !== 'stopping' && status.state !== 'deleting') || !status.held_up) return null
  const { reason, message } = status.held_up
  return <Because text={t(`held_up.${reason}`)} reason={reason} message={message} />
}

/** Of a try that failed one wants to know what the machine said; of what is away there is nothing more to say. */
function Because({ text, reason, message }: { text: string; reason: string; message: string }) {
  return (
    <>
      <Detail text={text} title={message} />
      {reason === 'retrying' && message !== '' && <Detail text={message} />}
    </>
  )
}

function Detail({ text, title }: { text: string; title?: string }) {
  return (
    <Text size="xs" c="dimmed" maw={360} className="breakable" title={title}>
      {text}
    </Text>
  )
}
