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
/** What is not named yet is judged under this name. */
const UNNAMED = 'unnamed'

interface Judged {
  data?: DryRun
  error: Error | null
  /** Why it would be in vain to send it. */
  never?: string
}

/** What would become of the request; asked only while it is `sound`. */
export function useInstanceVerdict(request: CreateInstance, sound: boolean): Judged {
  const { t } = useTranslation('jobs')
  const text = JSON.stringify({ ...request, name: UNNAMED })
  const [settled] = useDebouncedValue(text, PAUSE_MS)
  const { data, error } = useQuery({
    ...dryRunInstanceQuery({ ...request, name: UNNAMED }),
    enabled: sound && settled === text,
    placeholderData: keepPreviousData,
  })
  const never = sound && settled === text && data?.outcome === 'never'
  return { data, error, ...(never && { never: t('new.verdict_never') }) }
}

export function InstanceVerdict({ verdict: { data, error } }: { verdict: Judged }) {
  const { t } = useTranslation(['create', 'jobs'])
  return (
    <Section title={t('verdict')}>
      {error && <Trouble error={error} />}
      {!error && data && <Verdict verdict={data} />}
      {!error && !data && <Text size="sm">{t('jobs:new.verdict_checking')}</Text>}
    </Section>
  )
}
