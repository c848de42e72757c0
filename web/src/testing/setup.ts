import { LIMIT_MS } from './limit'

// Tests without a document need none of the library.
if ('document' in globalThis) {
  const { configure } = await import('@testing-library/dom')
  configure({ asyncUtilTimeout: LIMIT_MS })
}
