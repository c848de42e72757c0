// How fast something comes, and when it will be there.

/** Before this a guess would jump about. */
const SETTLED_S = 3

export interface Pace {
  bytesPerSecond: number
  /** Unknown where the total is. */
  secondsLeft?: number
}

/** What `seconds` since the beginning tell of the rest; nothing while it is too early to tell. */
export function paceOf(done: number, total: number | null, seconds: number | undefined): Pace | null {
  if (seconds === undefined || seconds < SETTLED_S || done <= 0) return null
  const bytesPerSecond = done / seconds
  if (total === null || total <= done) return { bytesPerSecond }
  return { bytesPerSecond, secondsLeft: Math.ceil((total - done) / bytesPerSecond) }
}
