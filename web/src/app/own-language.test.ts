import { expect, test } from 'vitest'

import { stepFor } from './own-language'

test('what was chosen in this browser stays, and an account without a choice learns it', () => {
  expect(stepFor(undefined, null, 'en')).toBeNull()
  expect(stepFor(undefined, 'zh-CN', 'zh-CN')).toEqual({ tell: 'zh-CN' })
  expect(stepFor('en', 'zh-CN', 'zh-CN')).toBeNull()
})

test('a browser that knows of no choice speaks the language of the account', () => {
  expect(stepFor('zh-CN', null, 'en')).toEqual({ speak: 'zh-CN' })
  expect(stepFor('zh-CN', null, 'zh-CN')).toBeNull()
})
