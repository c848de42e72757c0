const HOUR_MS = 3_600_000

/** So many days ago; to the hour, so that the question stays the same while it is looked at. */
export function daysAgo(days: number): string {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  return new Date(hour - days * 24 * HOUR_MS).toISOString()
}
