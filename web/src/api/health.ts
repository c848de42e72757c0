// How the parts of the site are.

import { queryOptions } from '@tanstack/react-query'

import { ApiError, api, dataOf } from './client'
import type { Health, HealthPart } from './types'

function isHealth(value: unknown): value is Health {
  return typeof value === 'object' && value !== null && 'parts' in value && Array.isArray(value.parts)
}

/** Somebody watches it. */
const WATCH_MS = 10_000

export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: async ({ signal }): Promise<HealthPart[]> => {
    try {
      return dataOf(await api.GET('/healthz', { signal })).parts
    } catch (error) {
      // To be unwell is an answer too, with the same body.
      if (error instanceof ApiError && isHealth(error.body)) return error.body.parts
      throw error
    }
  },
  refetchInterval: WATCH_MS,
})
