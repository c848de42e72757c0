import { Alert, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { QueueWords, reasonText } from '../../app/queue-words'
import { Trouble } from '../../app/trouble'
import { ApiError } from '../../api/client'
import { dryRunQuery } from '../../api/jobs'
import type { DryRun, SubmitJob } from '../../api/types'
import { IconAlert, IconCircleCheck, IconHourglass } from '../../ui/icons'
import { never } from '../../util/never'
import { Notes } from './converted'

/** What would become of the file, as the very part says that would decide it. */
export function JobVerdict({ wanted }: { wanted: SubmitJob }) {
  const { t } = useTranslation('jobs')
  const { data, error } = useQuery({ ...dryRunQuery(wanted), placeholderData: keepPreviousData })
  if (error) return <JobTrouble error={error} />
  if (!data) return <Text size="sm">{t('new.verdict_checking')}</Text>
  return <Outcome verdict={data} />
}

function Outcome({ verdict }: { verdict: DryRun }) {
  const { t } = useTranslation('jobs')
  switch (verdict.outcome) {
    case 'starts_now':
      return <Alert color="green" role="status" icon={<IconCircleCheck />} title={t('new.verdict_starts')} />
    case 'waits':
      return (
        <Alert color="yellow" role="status" icon={<IconHourglass />} title={t('new.verdict_waits')}>
          <QueueWords place={verdict.queue} />
        </Alert>
      )
    case 'never':
      return (
        <Alert color="red" role="status" icon={<IconAlert />} title={t('new.verdict_never')}>
          <Text size="sm">{reasonText(verdict.reason, verdict.params, t)}</Text>
        </Alert>
      )
    default:
      return never(verdict)
  }
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
