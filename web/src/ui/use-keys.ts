import { useEffect, useRef } from 'react'

/** How long the second key of a pair may take. */
const PAIR_MS = 1_500

/** Places that take keys themselves: fields, editors, terminals, desktops, and whatever is asked in a dialog. */
const TAKEN = 'input, textarea, select, [contenteditable], [role=application], [role=dialog], [role=menu]'

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TAKEN) !== null
}

/** Acts on single keys such as `c`, and on pairs such as `g i`; never while somebody types, or a dialog asks something. */
export function useKeys(acts: Readonly<Record<string, () => void>>, enabled: boolean) {
  const now = useRef(acts)
  useEffect(() => {
    now.current = acts
  })
  useEffect(() => {
    if (!enabled) return
    let before = ''
    let beforeAt = 0
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return
      // What an input method is composing is no key yet.
      if (event.isComposing || event.keyCode === 229 || isTyping(event.target)) return
      if (document.querySelector('[role=dialog]')) return
      const pair = event.timeStamp - beforeAt < PAIR_MS ? `${before} ${event.key}` : event.key
      const act = now.current[pair] ?? now.current[event.key]
      before = act ? '' : event.key
      beforeAt = event.timeStamp
      if (!act) return
      event.preventDefault()
      act()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [enabled])
}
