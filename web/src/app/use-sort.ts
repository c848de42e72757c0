import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

/** Sorting as it stands in the address: the column, with a minus for descending. */
export interface SortSearch {
  sort?: string
}

export function readSort(sort: unknown): SortSearch {
  return typeof sort === 'string' && /^-?[a-z_]+$/.test(sort) ? { sort } : {}
}

export function useSort(): { sort?: string; onSort: (sort: string | undefined) => void } {
  const { sort } = useSearch({ strict: false })
  const navigate = useNavigate()
  const onSort = useCallback(
    (next: string | undefined) =>
      void navigate({ to: '.', search: (before) => ({ ...before, sort: next }), replace: true }),
    [navigate],
  )
  return { sort, onSort }
}
