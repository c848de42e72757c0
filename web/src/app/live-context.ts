import { createContext, useContext, useSyncExternalStore } from 'react'

import type { Live, LiveState } from '../api/live'

export const LiveContext = createContext<Live | null>(null)

export function useLive(): Live {
  const live = useContext(LiveContext)
  if (live === null) throw new Error('no live connection around this component')
  return live
}

/** Whether the gateway cannot be asked now. */
export function useUnreachable(): boolean {
  const live = useContext(LiveContext)
  return useSyncExternalStore(live?.subscribe ?? quiet, live?.unreachable ?? never)
}

const quiet = () => () => undefined
const never = () => false

export function useLiveState(): LiveState {
  const live = useLive()
  return useSyncExternalStore(live.subscribe, live.current)
}
