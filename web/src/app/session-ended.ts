// Whether the session has ended while a page was open. The page stays as it is, with all that was typed into it, and
// asks for the password over it.

import { useSyncExternalStore } from 'react'

let ended = false
const listeners = new Set<() => void>()

export function setSessionEnded(now: boolean) {
  if (now === ended) return
  ended = now
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useSessionEnded(): boolean {
  return useSyncExternalStore(subscribe, () => ended)
}
