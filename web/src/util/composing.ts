// Enter that chooses a Chinese word is not Enter that submits a form.

import type { KeyboardEvent } from 'react'

/** For `onKeyDownCapture` of a form: the Enter of an input method reaches neither the form nor a drop-down. */
export function ignoreComposingEnter(event: KeyboardEvent) {
  // Safari ends the composition before it sends the key; only the old code 229 tells.
  if (event.key === 'Enter' && (event.nativeEvent.isComposing || event.nativeEvent.keyCode === 229)) {
    event.preventDefault()
    event.stopPropagation()
  }
}
