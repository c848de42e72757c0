import { useMemo } from 'react'

import { MetricsPanel } from '../../../app/metrics-panel'
import type { Instance } from '../../../api/types'

export function MetricsTab({ instance }: { instance: Instance }) {
  const { id, slug, status, cpus, memory_bytes: memoryBytes, gpus } = instance
  const source = useMemo(() => ({ instance: id }), [id])
  return (
    <MetricsPanel
      source={source}
      taking={status.state === 'running' || status.state === 'starting'}
      limits={{ cpus, memoryBytes, gpus }}
      file={slug}
    />
  )
}
