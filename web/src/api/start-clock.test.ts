import { expect, test } from 'vitest'

import { type Seen, seenWith } from './start-clock'

const through = (...states: Parameters<typeof seenWith>[1][]) =>
  states.reduce<Seen>((seen, state, at) => seenWith(seen, state, at), {})

test('each step has the time at which it was first seen', () => {
  expect(through('waiting', 'waiting', 'pulling', 'pulling', 'starting', 'running')).toEqual({
    waiting: 0,
    pulling: 2,
    starting: 4,
    running: 5,
  })
})

test('another start has clocks of its own', () => {
  expect(through('waiting', 'running', 'stopping', 'stopped', 'waiting', 'starting')).toEqual({
    waiting: 4,
    starting: 5,
  })
  expect(through('starting', 'running', 'starting')).toEqual({ starting: 2 })
})
