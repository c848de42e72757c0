import { Tabs } from '@mantine/core'
import type { ReactNode } from 'react'

import { useShownTab } from './use-shown-tab'

interface Props<S extends string> {
  /** What the list of tabs is called. */
  label: string
  sections: readonly { value: S; label: string }[]
  value: S
  onChoose: (section: S) => void
  children: ReactNode
}

/** Parts of a page, one at a time. */
export function SectionTabs<S extends string>({ label, sections, value, onChoose, children }: Props<S>) {
  const list = useShownTab(value)
  const choose = (chosen: string | null) => {
    const section = sections.find((one) => one.value === chosen)
    if (section) onChoose(section.value)
  }
  return (
    <Tabs value={value} onChange={choose} activateTabWithKeyboard={false} keepMounted={false}>
      <Tabs.List ref={list} aria-label={label} mb="md" className="scrolling-tabs">
        {sections.map((section) => (
          <Tabs.Tab key={section.value} value={section.value}>
            {section.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={value}>{children}</Tabs.Panel>
    </Tabs>
  )
}
