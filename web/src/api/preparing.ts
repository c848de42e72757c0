// The preparation that follows a start of the site: its images, and the tools volume.

import { queryOptions } from '@tanstack/react-query'
import type { TFunction } from 'i18next'

import { api, dataOf } from './client'
import type { PreparingStep } from './types'

/** Estimates are in minutes. */
export const PREPARING_POLL_MS = 15_000
/** The first steps may start after the page has loaded. */
const NOTHING_PENDING_POLL_MS = 60_000

export function isPending({ state }: PreparingStep): boolean {
  return state === 'waiting' || state === 'working'
}

export const preparingQuery = queryOptions({
  queryKey: ['preparing'],
  queryFn: async ({ signal }): Promise<PreparingStep[]> =>
    dataOf(await api.GET('/api/v1/site/preparing', { signal })).items,
  staleTime: PREPARING_POLL_MS,
  refetchInterval: ({ state: { data } }) =>
    data?.some(isPending) ? PREPARING_POLL_MS : NOTHING_PENDING_POLL_MS,
})

/** Returns the sentence for a step, with the minutes left. A step that is late shows none. */
export function preparingText({ what, state, seconds_left }: PreparingStep, t: TFunction<'common'>): string {
  if (state === 'failed') return t(`preparing.${what}_failed`)
  if (state === 'done') return t(`preparing.${what}_done`)
  if (!seconds_left) return t(`preparing.${what}`)
  return t(`preparing.${what}_left`, { count: Math.max(1, Math.round(seconds_left / 60)) })
}
