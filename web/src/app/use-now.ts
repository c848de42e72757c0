import { useInterval } from '@mantine/hooks'
import { useState } from 'react'

/** The time, read again each second while somebody waits. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useInterval(() => active && setNow(Date.now()), 1_000, { autoInvoke: true })
  return now
}
