import { Button, Tooltip } from '@mantine/core'

interface Props {
  label: string
  busy: boolean
  /** Why it cannot be sent now. The button stays focusable, so that everybody can read why. */
  reason?: string
}

/** Sends a form, or says why it would be in vain. */
export function SubmitButton({ label, busy, reason }: Props) {
  return (
    <Tooltip label={reason ?? ''} disabled={reason === undefined} multiline maw={320}>
      <Button
        type="submit"
        loading={busy}
        aria-disabled={reason !== undefined || undefined}
        data-disabled={reason !== undefined || undefined}
        onClick={(event) => {
          if (reason !== undefined) event.preventDefault()
        }}
      >
        {label}
      </Button>
    </Tooltip>
  )
}
