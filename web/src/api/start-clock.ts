// When this browser saw each step of an instance's start. The gateway tells only what is now; what was seen is kept for
// this tab, so that loading the page again does not stop the clocks.

import type { Instance, InstanceStatus } from './types'

type State = InstanceStatus['state']
export type Seen = Partial<Record<State, number>>

const KEY = 'berth.start-clock'
/** Enough for everything that somebody has started lately. */
const MOST = 50

function readAll(): Map<string, Seen> {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]')
    return new Map(Array.isArray(kept) ? kept : [])
  } catch {
    return new Map()
  }
}

const STARTS: readonly State[] = ['waiting', 'pulling', 'starting', 'running']

/** What has been seen once `state` is seen at `now`: a start after an end begins anew. */
export function seenWith(before: Seen, state: State, now: number): Seen {
  if (!STARTS.includes(state)) return {}
  if (state !== 'running' && before.running !== undefined) return { [state]: now }
  return before[state] === undefined ? { ...before, [state]: now } : before
}

export function noteState({ id, status }: Instance, now = Date.now()) {
  const all = readAll()
  const before = all.get(id) ?? {}
  const after = seenWith(before, status.state, now)
  if (after === before) return
  all.delete(id)
  if (Object.keys(after).length > 0) all.set(id, after)
  sessionStorage.setItem(KEY, JSON.stringify([...all].slice(-MOST)))
}

export function seenOf(id: string): Seen {
  return readAll().get(id) ?? {}
}
