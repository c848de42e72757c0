// Who did what, newest first, page by page.

import { infiniteQueryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { AuditPage } from './types'

export interface AuditFilter {
  /** Somebody's name; only for admins. */
  actor?: string
  act?: string
  /** What it was done to, such as an instance's id. */
  object?: string
  since?: string
}

const PAGE = 50
/** Where the first page begins. */
const NEWEST: number | undefined = undefined

/** Everybody's lines for admins, or one's own. */
export function auditQuery(whose: 'everyones' | 'own', filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ['audit', whose, filter],
    queryFn: async ({ pageParam, signal }): Promise<AuditPage> => {
      const { actor, ...rest } = filter
      const query = { ...rest, limit: PAGE, before: pageParam }
      return whose === 'own'
        ? dataOf(await api.GET('/api/v1/me/audit', { params: { query }, signal }))
        : dataOf(await api.GET('/api/v1/audit', { params: { query: { ...query, actor } }, signal }))
    },
    initialPageParam: NEWEST,
    getNextPageParam: (page) => page.next ?? undefined,
  })
}
