import { ActionIcon, Button, Tooltip } from '@mantine/core'
import type { ComponentType, MouseEvent } from 'react'

import { useOffline } from './offline'
import classes from './action-button.module.css'

interface Props {
  label: string
  icon: ComponentType<{ size?: number; stroke?: number }>
  onClick: () => void
  /** Why it cannot be done now. The button then stays focusable, so that everybody can read why. */
  reason?: string
  busy?: boolean
  /** Only the icon; the label becomes the tooltip. */
  compact?: boolean
  /** It asks nothing of the gateway. */
  local?: boolean
  danger?: boolean
  /** The one thing that most come for. */
  primary?: boolean
}

/** A button that says why it is disabled. */
export function ActionButton(props: Props) {
  const { label, icon: Icon, onClick, busy, compact, local, danger, primary } = props
  const offline = useOffline()
  const reason = (local ? undefined : offline) ?? props.reason
  const state = {
    'aria-disabled': reason !== undefined || undefined,
    'data-disabled': reason !== undefined || undefined,
    loading: busy,
    color: danger ? 'red' : undefined,
    onClick: (event: MouseEvent) => {
      event.preventDefault()
      if (reason === undefined) onClick()
    },
  }
  const button = compact ? (
    <ActionIcon
      variant="subtle"
      size="lg"
      aria-label={label}
      className={`${classes.action} ${classes.icon}`}
      {...state}
    >
      <Icon size={20} stroke={1.75} />
    </ActionIcon>
  ) : (
    <Button
      variant={primary && reason === undefined ? 'filled' : 'default'}
      size="sm"
      leftSection={<Icon size={18} stroke={1.75} />}
      className={classes.action}
      {...state}
    >
      {label}
    </Button>
  )
  return (
    <Tooltip label={reason ?? label} disabled={reason === undefined && !compact} multiline maw={320}>
      {button}
    </Tooltip>
  )
}
