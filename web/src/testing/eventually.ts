import { vi } from 'vitest'

import { LIMIT_MS } from './limit'

/** Waits until `check` no longer throws. */
export function eventually(check: () => void) {
  return vi.waitFor(check, { timeout: LIMIT_MS })
}
