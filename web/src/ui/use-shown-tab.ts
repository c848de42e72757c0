import { type RefObject, useLayoutEffect, useRef } from 'react'

/** Keeps the chosen tab in sight where a narrow window shows only some of them. */
export function useShownTab(chosen: string): RefObject<HTMLDivElement | null> {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const tab = list.current?.querySelector(`[id$="-tab-${chosen}"]`)
    if (!list.current || !tab) return
    // Only the list is scrolled, never the page.
    const [whole, part] = [list.current.getBoundingClientRect(), tab.getBoundingClientRect()]
    list.current.scrollLeft += part.left + part.width / 2 - (whole.left + whole.width / 2)
  }, [chosen])
  return list
}
