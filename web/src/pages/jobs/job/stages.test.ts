import { expect, test } from 'vitest'

import type { JobEventAt } from '../../../api/types'
import { stageTimes } from './stages'

const at = (second: number) => new Date(second * 1000).toISOString()

test('the stages are those of the last try', () => {
  const end = { cause: 'exit_code', exit_code: 1, message: '' } as const
  const events: JobEventAt[] = [
    { event: 'submitted', at: at(0) },
    { event: 'started', attempt: 1, at: at(1) },
    { event: 'begun', at: at(2) },
    { event: 'retried', end, at: at(3) },
    { event: 'started', attempt: 2, at: at(4) },
  ]
  expect(stageTimes(events)).toEqual({ wait: 3000, prepare: 4000 })
})
