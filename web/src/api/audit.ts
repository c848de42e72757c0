// Who did what, newest first, page by page.

import { infiniteQueryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { AuditEntry, AuditPage } from './types'

export interface AuditFilter {
  /** Somebody's name; only for admins. */
  actor?: string
  act?: string
  /** What it was done to, such as an instance's id. */
  object?: string
  since?: string
}

const PAGE = 50
/** As many as a gateway gives at once, and as many times as a file is still worth reading. */
const FILE_PAGE = 1000
const FILE_PAGES = 100
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
        : everyones({ ...query, actor }, signal)
    },
    initialPageParam: NEWEST,
    getNextPageParam: (page) => page.next ?? undefined,
  })
}

async function everyones(
  query: AuditFilter & { limit: number; before?: number },
  signal?: AbortSignal,
): Promise<AuditPage> {
  return dataOf(await api.GET('/api/v1/audit', { params: { query }, signal }))
}

/** All lines that the filter lets through, newest first. */
export async function readAudit(filter: AuditFilter): Promise<AuditEntry[]> {
  const lines: AuditEntry[] = []
  let before: number | undefined
  for (let page = 0; page < FILE_PAGES; page += 1) {
    const { items, next } = await everyones({ ...filter, limit: FILE_PAGE, before })
    lines.push(...items)
    if (typeof next !== 'number') break
    before = next
  }
  return lines
}
