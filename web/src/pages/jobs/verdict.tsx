import { Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { Verdict } from '../../app/verdict'
import { ApiError } from '../../api/client'
import { dryRunQuery } from '../../api/jobs'
import type { DryRun, SubmitJob } from '../../api/types'
import { Notes } from './converted'

export function useVerdict(wanted: SubmitJob): UseQueryResult<DryRun> {
  return useQuery({ ...dryRunQuery(wanted), placeholderData: keepPreviousData })
}

/** What would become of the file. */
export function JobVerdict({ verdict: { data, error } }: { verdict: UseQueryResult<DryRun> }) {
  const { t } = useTranslation('jobs')
  if (error) return <JobTrouble error={error} />
  if (!data) return <Text size="sm">{t('new.verdict_checking')}</Text>
  return <Verdict verdict={data} />
}

/** An error about a job file, with every mistake that was found in it. */
export function JobTrouble({ error }: { error: unknown }) {
  const notes = error instanceof ApiError ? (error.problem.notes ?? []) : []
  return (
    <Stack gap="xs">
      <Trouble error={error} />
      <Notes notes={notes} />
    </Stack>
  )
}
