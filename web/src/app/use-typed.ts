import { useDebouncedCallback } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'

/** While somebody types the address stays as it is. */
const PAUSE_MS = 300

/**
 * Text that stands in the address, for an input. The input has a text of its own, which the address follows when the
 * typing pauses: one that is bound to the address itself loses letters, and Chinese that is being composed.
 */
export function useTyped(value: string, put: (text: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    // Written by somebody else than this input: a link, the way back, a button that clears.
    if (value === sent.current) return
    sent.current = value
    setTyped(value)
  }, [value])
  const send = useDebouncedCallback((text: string) => {
    sent.current = text
    put(text)
  }, PAUSE_MS)
  const type = (text: string) => {
    setTyped(text)
    send(text)
  }
  return [typed, type]
}
