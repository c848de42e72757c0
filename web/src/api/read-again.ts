// News may come while a view is being read, and what that reading brings may be older than the news.

import type { QueryClient, QueryFilters } from '@tanstack/react-query'

/** Reads the views that are open again. A reading under way is begun anew; the very first one of a view, which cannot be,
 * is followed by another. */
export function readAgain(cache: QueryClient, filters: QueryFilters): Promise<void> {
  for (const query of cache.getQueryCache().findAll({ ...filters, fetchStatus: 'fetching' })) {
    if (query.state.data !== undefined) continue
    const { queryKey } = query
    void query.promise?.then(
      () => cache.invalidateQueries({ queryKey, exact: true }),
      () => undefined,
    )
  }
  return cache.invalidateQueries(filters)
}

/** The same for those alone that are being read: the others have the news already. */
export function readAgainIfUnderWay(cache: QueryClient, filters: QueryFilters) {
  void readAgain(cache, { ...filters, fetchStatus: 'fetching' })
}
