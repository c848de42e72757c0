// The way to the gateway. A link that dies in silence (another network, a laptop that slept) tells nobody: a browser lets
// no page ask a WebSocket whether anybody is there. So who finds out tells the others, and whoever has heard nothing
// since then connects anew.

/** `since`: from then on nothing can be relied upon. */
type Check = (since: number) => void

const doubting = new Set<Check>()

/** The way to the gateway was not what it seemed; nothing is known of it since then. */
export function doubt(since: number) {
  for (const check of doubting) check(since)
}

/** Calls back on every doubt, until the returned function is called. A browser that is online again has another network. */
export function onDoubt(check: Check): () => void {
  const online = () => check(Date.now())
  doubting.add(check)
  window.addEventListener('online', online)
  return () => {
    doubting.delete(check)
    window.removeEventListener('online', online)
  }
}
