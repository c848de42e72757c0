import { Button, type ButtonProps, Tooltip } from '@mantine/core'
import type { MouseEvent } from 'react'

import { useOffline } from './offline'

interface Props extends Pick<ButtonProps, 'variant' | 'color' | 'size' | 'leftSection' | 'fullWidth'> {
  label: string
  busy?: boolean
  /** Why it cannot be done now. The button stays focusable, so that everybody can read why. */
  reason?: string
  /** Sends its form instead. */
  type?: 'submit'
  onClick?: () => void
}

/** Asks something of the gateway, or says why it would be in vain. */
export function ReasonedButton({ label, busy, reason: own, type, onClick, ...look }: Props) {
  const offline = useOffline()
  const reason = offline ?? own
  return (
    <Tooltip label={reason ?? ''} disabled={reason === undefined} multiline maw={320}>
      <Button
        {...look}
        type={type ?? 'button'}
        loading={busy}
        aria-disabled={reason !== undefined || undefined}
        data-disabled={reason !== undefined || undefined}
        onClick={(event: MouseEvent) => {
          if (reason !== undefined) event.preventDefault()
          else onClick?.()
        }}
      >
        {label}
      </Button>
    </Tooltip>
  )
}
