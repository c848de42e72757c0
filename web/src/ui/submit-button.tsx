import type { ComponentProps } from 'react'

import { ReasonedButton } from './reasoned-button'

/** Sends a form, or says why it would be in vain. */
export function SubmitButton(props: Omit<ComponentProps<typeof ReasonedButton>, 'type' | 'onClick'>) {
  return <ReasonedButton {...props} type="submit" />
}
