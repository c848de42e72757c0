import { createContext, useContext, useSyncExternalStore } from 'react'

import type { Live, LiveState } from '../api/live'

export const LiveContext = createContext<Live | null>(null)

export function useLiveState(): LiveState {
  const live = useContext(LiveContext)
  if (live === null) throw new Error('no live connection around this component')
  return useSyncExternalStore(live.subscribe, live.current)
}
