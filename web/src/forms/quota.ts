// The quota form as data: limits for good, or others for a while.

import type { Quota, QuotaLimits } from '../api/types'
import { GIB, HOUR_S } from '../util/format'

export const QUOTA_FIELDS = ['gpus', 'cpus', 'memoryGib', 'instances', 'jobs', 'imagesGib'] as const

type Field = (typeof QUOTA_FIELDS)[number]

/** Number inputs hold text while they are empty or half typed. */
export type QuotaValues = Record<Field, number | string> & {
  /** Limits of single models of GPU. */
  models: Record<string, number | string>
}

export function quotaValues(limits: QuotaLimits = {}): QuotaValues {
  const {
    gpus,
    cpus,
    memory_bytes: memory,
    instances,
    jobs,
    gpus_by_model: models,
    image_bytes: images,
  } = limits
  return {
    gpus: gpus ?? '',
    cpus: cpus ?? '',
    memoryGib: typeof memory === 'number' ? memory / GIB : '',
    instances: instances ?? '',
    jobs: jobs ?? '',
    imagesGib: typeof images === 'number' ? images / GIB : '',
    models: { ...models },
  }
}

/** What is typed, if it is a number by now. */
function typed(value: number | string): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function bytesOf(gib: number | string): number | undefined {
  const number = typed(gib)
  return number === undefined ? undefined : Math.round(number * GIB)
}

export function limitsFrom(values: QuotaValues): QuotaLimits {
  const models = Object.entries(values.models).flatMap(([model, most]) =>
    typeof most === 'number' ? [[model, most] as const] : [],
  )
  return {
    gpus: typed(values.gpus),
    cpus: typed(values.cpus),
    memory_bytes: bytesOf(values.memoryGib),
    instances: typed(values.instances),
    jobs: typed(values.jobs),
    image_bytes: bytesOf(values.imagesGib),
    ...(models.length > 0 && { gpus_by_model: Object.fromEntries(models) }),
  }
}

/** The whole quota that is to be: what is set for a while leaves the rest as it is. */
export function quotaFrom(before: Quota, values: QuotaValues, hours: number | null, now: number): Quota {
  const limits = limitsFrom(values)
  if (hours === null) return { ...before, limits }
  return { ...before, raise: { limits, until: new Date(now + hours * HOUR_S * 1000).toISOString() } }
}
