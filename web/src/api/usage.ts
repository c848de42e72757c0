// What everyone has held over time.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { Usage } from './types'

/** Of all whom one oversees, since a moment. */
export function usageQuery(since: string) {
  return queryOptions({
    queryKey: ['usage', since],
    queryFn: async ({ signal }): Promise<Usage[]> =>
      dataOf(await api.GET('/api/v1/usage', { params: { query: { all: true, since } }, signal })).items,
    staleTime: 60_000,
  })
}
