// How far back plots go, as it stands in the address. A week is all that is kept.

export const RANGES = { '15m': 900, '1h': 3_600, '6h': 21_600, '1d': 86_400, '7d': 604_800 } as const
export type MetricsRange = keyof typeof RANGES

export const DEFAULT_RANGE: MetricsRange = '1h'

export function isMetricsRange(value: unknown): value is MetricsRange {
  return typeof value === 'string' && Object.hasOwn(RANGES, value)
}
