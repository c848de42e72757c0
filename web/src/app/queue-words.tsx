import { Stack, Text } from '@mantine/core'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'

import { kindsOfWork } from '../api/problem-text'
import type { QueuePlace, QueueReason } from '../api/types'
import { formatBytes, formatExact } from '../util/format'

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

/** A place in the line: which (unless `bare`), why, until when, and what would start now. */
export function QueueWords({ place, bare }: { place: QueuePlace; bare?: boolean }) {
  const { t, i18n } = useTranslation('jobs')
  return (
    <Stack gap={2} maw={420}>
      {!bare && (
        <Text size="xs" fw={600}>
          {t('queue.position', { position: place.position })}
        </Text>
      )}
      <Text size="xs" c="dimmed" className="breakable">
        {reasonText(place.reason, place.params, t)}
      </Text>
      {place.starts_by && (
        <Text size="xs" c="dimmed">
          {t('queue.starts_by', { at: formatExact(new Date(place.starts_by), i18n.language) })}
        </Text>
      )}
      {typeof place.starts_now_with_gpus === 'number' && (
        <Text size="xs" c="dimmed">
          {t('queue.starts_now', { count: place.starts_now_with_gpus })}
        </Text>
      )}
    </Stack>
  )
}
