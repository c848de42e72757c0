// Samples as the columns of a plot and as a table for other programs.

import type { Sample } from '../api/types'

/** What is plotted of a sample. */
export const MEASURES = [
  'gpu_busy',
  'gpu_memory_bytes',
  'cpus',
  'memory_bytes',
  'disk_read_bytes',
  'disk_written_bytes',
  'received_bytes',
  'sent_bytes',
] as const
export type Measure = (typeof MEASURES)[number]

export interface Columns {
  /** Seconds since 1970, ascending. */
  times: number[]
  of: Record<Measure, (number | null)[]>
}

/** Between two samples of an instance that runs. */
const EVERY_S = 10
/** Points that are so many steps apart have nothing known between them. */
const GAP_STEPS = 2.5

const timeOf = (sample: Sample) => new Date(sample.at).getTime() / 1000

/** The columns of samples that are `step` apart; where some are missing stands a point without values, so that no line is drawn. */
export function columnsOf(samples: readonly Sample[], step: number): Columns {
  const times: number[] = []
  const rows: (Sample | null)[] = []
  for (const sample of samples) {
    const at = timeOf(sample)
    const last = times.at(-1)
    if (last !== undefined && at - last > step * GAP_STEPS) {
      times.push(last + step)
      rows.push(null)
    }
    times.push(at)
    rows.push(sample)
  }
  const column = (measure: Measure) => rows.map((row) => row?.[measure] ?? null)
  return {
    times,
    of: {
      gpu_busy: column('gpu_busy'),
      gpu_memory_bytes: column('gpu_memory_bytes'),
      cpus: column('cpus'),
      memory_bytes: column('memory_bytes'),
      disk_read_bytes: column('disk_read_bytes'),
      disk_written_bytes: column('disk_written_bytes'),
      received_bytes: column('received_bytes'),
      sent_bytes: column('sent_bytes'),
    },
  }
}

/** How far apart the points of a stretch are, when there are at most `points` of it. */
export function stepOf(seconds: number, points: number): number {
  return Math.max(EVERY_S, seconds / points)
}

/** A table as spreadsheets and Python read it; what is not known is empty. */
export function csvOf(samples: readonly Sample[]): string {
  const lines = samples.map((sample) =>
    [sample.at, ...MEASURES.map((measure) => sample[measure] ?? '')].join(','),
  )
  return `${['at', ...MEASURES].join(',')}\n${lines.map((line) => `${line}\n`).join('')}`
}
