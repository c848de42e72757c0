import { expect, test } from 'vitest'

import { paceOf } from './pace'

test('the rest is told by what came so far', () => {
  expect(paceOf(500, 2_000, 10)).toEqual({ bytesPerSecond: 50, secondsLeft: 30 })
  expect(paceOf(2_000, 2_000, 10)).toEqual({ bytesPerSecond: 200 })
  expect(paceOf(500, null, 10)).toEqual({ bytesPerSecond: 50 })
})

test('too early to tell', () => {
  expect(paceOf(500, 2_000, 1)).toBeNull()
  expect(paceOf(0, 2_000, 60)).toBeNull()
  expect(paceOf(500, 2_000, undefined)).toBeNull()
})
