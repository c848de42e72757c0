import { Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { Verdict } from '../../app/verdict'
import { dryRunInstanceQuery } from '../../api/instances'
import type { CreateInstance, DryRun } from '../../api/types'
import { Section } from '../../ui/section'

/** While somebody types nothing is asked. */
const PAUSE_MS = 400

interface Judged {
  data?: DryRun
  error: Error | null
  /** Why it would be in vain to send it. */
  never?: string
  /** It has mistakes, and is not asked about: what was said of it before is of something else. */
  unsound: boolean
}

/** What would become of the request, which need not be named yet; asked only while it is `sound`. */
export function useInstanceVerdict(wanted: CreateInstance, sound: boolean): Judged {
  const { t } = useTranslation('jobs')
  const request = { ...wanted, name: '' }
  const text = JSON.stringify(request)
  const [settled] = useDebouncedValue(text, PAUSE_MS)
  const { data, error } = useQuery({
    ...dryRunInstanceQuery(request),
    enabled: sound && settled === text,
    placeholderData: keepPreviousData,
  })
  const never = sound && settled === text && data?.outcome === 'never'
  return { data, error, unsound: !sound, ...(never && { never: t('new.verdict_never') }) }
}

export function InstanceVerdict({ verdict: { data, error, unsound } }: { verdict: Judged }) {
  const { t } = useTranslation(['create', 'jobs'])
  if (unsound) {
    return (
      <Section title={t('verdict')}>
        <Text size="sm">{t('verdict_unsound')}</Text>
      </Section>
    )
  }
  return (
    <Section title={t('verdict')}>
      {error && <Trouble error={error} />}
      {!error && data && <Verdict verdict={data} />}
      {!error && !data && <Text size="sm">{t('jobs:new.verdict_checking')}</Text>}
    </Section>
  )
}
