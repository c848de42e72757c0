import { Anchor, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import { kindsOfWork } from '../api/problem-text'
import { queueQuery } from '../api/queue'
import type { Queued, QueuePlace, QueueReason } from '../api/types'
import { formatBytes, formatDuration, formatExact } from '../util/format'
import { paths } from '../util/path-builder'
import { useNow } from './use-now'

type Translate = TFunction<'jobs'>

/** What is counted, in the reader's language: `gpus of A100` names a model. */
function resourceWord(word: string, t: Translate): string {
  const [, model] = /^gpus of (.+)$/.exec(word) ?? []
  if (model !== undefined) return t('resource.gpus_of', { model })
  return t(`resource.${word}`, { defaultValue: word })
}

/** Why something waits, as a sentence. */
export function reasonText(
  reason: QueueReason,
  params: Record<string, string> | undefined,
  t: Translate,
): string {
  const { resource = '', owner = '', name = '', kinds, ...amounts } = params ?? {}
  if (kinds !== undefined) {
    const words = kindsOfWork(kinds, (key, options) => t(key, options))
    return t('reason.never_pool', { pool: amounts.pool, kinds: words })
  }
  const amount = (text: string) =>
    resource === 'memory' && /^\d+$/.test(text) ? formatBytes(Number(text)) : text
  const values = Object.fromEntries(Object.entries(amounts).map(([key, text]) => [key, amount(text)]))
  const key = reason === 'never' && values.largest === undefined ? 'never_anywhere' : reason
  return t(`reason.${key}`, {
    ...values,
    resource: resourceWord(resource, t),
    owner: owner === '' ? '' : t(`owner.${owner}`, { name, defaultValue: name }),
    defaultValue: reason,
  })
}

/** What waits. */
export interface Waiting {
  kind: Queued['kind']
  id: string
}

interface Props {
  place: QueuePlace
  /** Absent for what is only thought of. */
  work?: Waiting
  bare?: boolean
}

/** What is asked for cannot be changed while it waits, so this leads to another one that asks for less. */
function cloneWith({ kind, id }: Waiting, gpus: number): string {
  return `${kind === 'job' ? paths.cloneOfJob(id) : paths.cloneOf(id)}&gpus=${gpus}`
}

/** "3 of 7", and for how long. */
function Place({ position, work }: { position: number; work?: Waiting }) {
  const { t, i18n } = useTranslation('jobs')
  const { data } = useQuery({ ...queueQuery, enabled: work !== undefined })
  const total = data?.filter((one) => one.position > 0).length ?? 0
  const since = data?.find((one) => one.work?.id === work?.id)?.since
  const now = useNow(since !== undefined)
  const seconds = since === undefined ? 0 : (now - new Date(since).getTime()) / 1000
  return (
    <Text size="xs" fw={600} className="numbers">
      {total >= position && position > 0
        ? t('queue.position_of', { position, total })
        : t('queue.position', { position })}
      {seconds >= 1 && ` · ${t('queue.waited', { time: formatDuration(seconds, i18n.language) })}`}
    </Text>
  )
}

/** A place in the line: which (unless `bare`), why, until when, and what would start now. */
export function QueueWords({ place, work, bare }: Props) {
  const { t, i18n } = useTranslation('jobs')
  // What is only thought of is told on a tinted ground, where dimmed text is too faint.
  const tone = work && 'dimmed'
  return (
    <Stack gap={2} maw={420}>
      {!bare && <Place position={place.position} work={work} />}
      <Text size="xs" c={tone} className="breakable">
        {reasonText(place.reason, place.params, t)}
      </Text>
      {place.starts_by && (
        <Text size="xs" c={tone}>
          {t('queue.starts_by', { at: formatExact(new Date(place.starts_by), i18n.language) })}
        </Text>
      )}
      {typeof place.starts_now_with_gpus === 'number' && (
        <Text size="xs" c={tone}>
          {t('queue.starts_now', { count: place.starts_now_with_gpus })}{' '}
          {work && (
            <Anchor
              component={Link}
              to={cloneWith(work, place.starts_now_with_gpus)}
              size="xs"
              inherit
              underline="always"
            >
              {t('queue.ask_for_less')}
            </Anchor>
          )}
        </Text>
      )}
    </Stack>
  )
}
