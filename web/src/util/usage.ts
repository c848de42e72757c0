// What was held over time, summed up, and as a table for a spreadsheet.

import type { Usage } from '../api/types'
import { csvTable } from './csv'

export const USAGE_KEYS = ['user', 'group', 'model'] as const
export type UsageKey = (typeof USAGE_KEYS)[number]

export function isUsageKey(value: unknown): value is UsageKey {
  return USAGE_KEYS.some((key) => key === value)
}

export interface UsageSum {
  /** Empty for what had no GPU, where the sum is by model. */
  name: string
  gpuHours: number
  cpuHours: number
  starts: number
  imageBytes: number
}

const nameOf = ({ user, group, gpu_model: model }: Usage, by: UsageKey) =>
  ({ user, group, model: model ?? '' })[by]

/** The sums by user, group or model, the most GPU hours first. */
export function sumsOf(rows: readonly Usage[], by: UsageKey): UsageSum[] {
  const sums = new Map<string, UsageSum>()
  for (const row of rows) {
    const name = nameOf(row, by)
    const sum = sums.get(name) ?? { name, gpuHours: 0, cpuHours: 0, starts: 0, imageBytes: 0 }
    sum.gpuHours += row.gpu_hours
    sum.cpuHours += row.cpu_hours
    sum.starts += row.starts
    sum.imageBytes += row.image_bytes ?? 0
    sums.set(name, sum)
  }
  return [...sums.values()].toSorted((a, b) => b.gpuHours - a.gpuHours || b.cpuHours - a.cpuHours)
}

const COLUMNS = ['user', 'group', 'gpu_model', 'gpu_hours', 'cpu_hours', 'starts', 'image_bytes'] as const

export function usageCsv(rows: readonly Usage[]): string {
  return csvTable(
    COLUMNS,
    rows.map((row) => COLUMNS.map((column) => row[column] ?? '')),
  )
}
