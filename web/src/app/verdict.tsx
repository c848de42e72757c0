import { Alert, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import type { DryRun } from '../api/types'
import { IconAlert, IconCircleCheck, IconHourglass } from '../ui/icons'
import { never } from '../util/never'
import { QueueWords, reasonText } from './queue-words'

/** What would become of a request, as the very part says that would decide it. */
export function Verdict({ verdict }: { verdict: DryRun }) {
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
