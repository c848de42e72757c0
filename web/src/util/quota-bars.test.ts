import { expect, test } from 'vitest'

import { barsOf } from './quota-bars'

const nothing = { cpus: 0, memory_bytes: 0, gpus: 0, instances: 0, jobs: 0 }

test('only what has a limit has a bar, and a limit of none is one', () => {
  const bars = barsOf({
    name: 'alice',
    limits: { gpus: 4, gpus_by_model: { A100: 2 }, jobs: 0 },
    used: { ...nothing, gpus: 3, gpus_by_model: { A100: 1 }, cpus: 8 },
    waiting: { ...nothing, gpus: 2 },
  })
  expect(bars).toEqual([
    { resource: 'gpus', used: 3, waiting: 2, limit: 4 },
    { resource: 'gpus_of', model: 'A100', used: 1, waiting: 0, limit: 2 },
    { resource: 'jobs', used: 0, waiting: 0, limit: 0 },
  ])
})
