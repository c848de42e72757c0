// The line: all that waits for room.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { Queued } from './types'

export const queueQuery = queryOptions({
  queryKey: ['queue'],
  queryFn: async ({ signal }): Promise<Queued[]> => dataOf(await api.GET('/api/v1/queue', { signal })).items,
})
