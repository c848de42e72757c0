import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'

import { actOnApp, type AppAct, type AppName, appQuery } from '../../../api/apps'

/** An app of an instance: how it stands, and a start of it on first use, since whoever opens its page wants it. */
export function useApp(instance: string, name: AppName, folder?: string) {
  const cache = useQueryClient()
  const query = appQuery(instance, name, folder)
  const { data: app, error, refetch } = useQuery(query)
  const acting = useMutation({
    mutationFn: (act: AppAct) => actOnApp(instance, name, act, folder),
    onSuccess: (now) => cache.setQueryData(query.queryKey, now),
  })
  const { mutate } = acting
  const begun = useRef(false)
  const startable = app?.state === 'stopped'
  useEffect(() => {
    if (!startable || begun.current) return
    begun.current = true
    mutate('start')
  }, [startable, mutate])
  return {
    app,
    error: error ?? acting.error,
    busy: acting.isPending,
    /** What somebody asks for is not undone by the start on first use. */
    act: (act: AppAct, done?: () => void) => {
      begun.current = true
      mutate(act, { onSuccess: done })
    },
    look: () => {
      acting.reset()
      void refetch()
    },
  }
}

export type UsedApp = ReturnType<typeof useApp>
