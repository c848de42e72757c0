// What instances and tasks used, for plots.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { Sample } from './types'

/** Whose: an instance's, or those of one task of a job, as `role/index`. */
export type SampleSource = { instance: string } | { job: string; task: string; attempt: number }

/** As many as a plot has room for. */
export const POINTS = 360
/** As often as there is a new one. */
const EVERY_MS = 10_000

/** The last `seconds` until its end; without one until now, and read again and again while more are being taken. */
export function samplesQuery(source: SampleSource, seconds: number, taking: boolean, end?: string) {
  return queryOptions({
    queryKey: ['samples', source, seconds, end],
    queryFn: async ({ signal }): Promise<Sample[]> => {
      const last = end === undefined ? Date.now() : new Date(end).getTime()
      const since = new Date(last - seconds * 1000).toISOString()
      const stretch = { since, ...(end !== undefined && { until: end }), points: POINTS }
      if ('instance' in source) {
        const path = { name: source.instance }
        return dataOf(
          await api.GET('/api/v1/instances/{name}/samples', { params: { path, query: stretch }, signal }),
        ).items
      }
      const path = { name: source.job }
      const query = { ...stretch, task: source.task, attempt: source.attempt }
      return dataOf(await api.GET('/api/v1/jobs/{name}/samples', { params: { path, query }, signal })).items
    },
    refetchInterval: taking ? Math.max(EVERY_MS, (seconds * 1000) / POINTS) : false,
  })
}
