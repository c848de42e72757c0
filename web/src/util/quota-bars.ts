// A quota as bars: only what has a limit, as a bar without an end says nothing.

import type { QuotaStanding } from '../api/types'

export interface QuotaBar {
  resource: 'gpus' | 'gpus_of' | 'cpus' | 'memory' | 'instances' | 'jobs' | 'images'
  /** Of which model, where the limit is of one. */
  model?: string
  used: number
  waiting: number
  limit: number
}

export function barsOf({ limits, used, waiting }: QuotaStanding): QuotaBar[] {
  const models = Object.entries(limits.gpus_by_model ?? {}).map(([model, limit]): QuotaBar => ({
    resource: 'gpus_of',
    model,
    used: used.gpus_by_model?.[model] ?? 0,
    waiting: waiting.gpus_by_model?.[model] ?? 0,
    limit,
  }))
  const bar = (
    resource: QuotaBar['resource'],
    key: 'gpus' | 'cpus' | 'memory_bytes' | 'instances' | 'jobs' | 'image_bytes',
  ): QuotaBar[] => {
    const limit = limits[key]
    if (typeof limit !== 'number') return []
    return [{ resource, used: used[key] ?? 0, waiting: waiting[key] ?? 0, limit }]
  }
  return [
    ...bar('gpus', 'gpus'),
    ...models,
    ...bar('cpus', 'cpus'),
    ...bar('memory', 'memory_bytes'),
    ...bar('instances', 'instances'),
    ...bar('jobs', 'jobs'),
    ...bar('images', 'image_bytes'),
  ]
}
