/** Leads to what is wrong in a form: the first in the page, not the first found. */
export function focusFirstError() {
  // After the errors are drawn.
  requestAnimationFrame(() => document.querySelector<HTMLElement>('form [aria-invalid="true"]')?.focus())
}
