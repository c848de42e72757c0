import { Badge } from '@mantine/core'
import type { ComponentType } from 'react'

interface Props {
  label: string
  color: string
  icon: ComponentType<{ size?: number; className?: string }>
  /** Something is being done: the icon turns. */
  turning?: boolean
}

/** A state as icon, word and colour, so that none of the three is needed to understand it. */
export function StateBadge({ label, color, icon: Icon, turning }: Props) {
  return (
    <Badge
      color={color}
      variant="light"
      size="lg"
      radius="sm"
      tt="none"
      fw={600}
      style={{ flexShrink: 0 }}
      leftSection={<Icon size={15} className={turning ? 'turning' : undefined} />}
    >
      {label}
    </Badge>
  )
}
