import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { jobsQuery } from '../../api/jobs'
import { LoadingRows } from '../../ui/loading'
import { JobRecords } from '../jobs'

/** The jobs of everybody: to see what waits and runs, and to stop it. */
export function AllJobsSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery({ ...jobsQuery('everyones'), refetchInterval: 10_000 })
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && <Text c="dimmed">{t('all_jobs.none')}</Text>}
      {data && data.length > 0 && <JobRecords jobs={data} all />}
    </Stack>
  )
}
