import { Anchor, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { HowItEnded } from '../../../app/how-it-ended'
import { readLogs } from '../../../api/logs'
import type { Instance } from '../../../api/types'
import { CopyField } from '../../../ui/copy'
import { paths } from '../../../util/path-builder'

/** As much as fits beside the cause; the rest is one click away. */
const LAST_LINES = 12

/** Why it failed, what to do, and what it wrote at last. */
export function Failure({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { status, start_times: times = {} } = instance
  if (status.state !== 'failed') return null
  const title = t(times.running ? 'failure.ended' : 'failure.not_started')
  const end = { ...status, cause: status.cause ?? 'cannot_start', message: status.reason }
  return (
    <HowItEnded title={title} end={end}>
      {instance.actions.includes('logs') && <LastLines instance={instance} />}
    </HowItEnded>
  )
}

function LastLines({ instance: { id, start_times: times } }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { data = '' } = useQuery({
    queryKey: ['log-end', id, times?.failed],
    queryFn: async ({ signal }) => (await readLogs({ instance: id }, signal, LAST_LINES)).text(),
    staleTime: Infinity,
    refetchInterval: false,
  })
  if (data.trim() === '') return null
  return (
    <Stack gap={4} mt="xs">
      <Text size="sm" fw={600}>
        {t('failure.last_lines')}
      </Text>
      <CopyField block text={data.trimEnd()} />
      <Anchor component={Link} to={paths.instance(id, 'logs')} size="sm">
        {t('failure.all_lines')}
      </Anchor>
    </Stack>
  )
}
