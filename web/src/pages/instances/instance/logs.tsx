import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { LogPanel } from '../../../app/log-panel'
import type { Instance } from '../../../api/types'
import { NotNow } from './not-now'

export function LogsTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation('streams')
  const source = useMemo(() => ({ instance: instance.id }), [instance.id])
  if (!instance.actions.includes('logs')) return <NotNow instance={instance} action="logs" />
  const writing = instance.status.state === 'running' || instance.status.state === 'starting'
  // A restart begins another stream: what was followed before has ended.
  const since = instance.status.state === 'running' ? instance.status.since : ''
  return (
    <LogPanel
      key={`${instance.id}/${writing}/${since}`}
      source={source}
      writing={writing}
      label={t('logs.label', { name: instance.name })}
      file={`${instance.slug}.log`}
    />
  )
}
