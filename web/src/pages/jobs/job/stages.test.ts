import { expect, test } from 'vitest'

import type { JobEventAt } from '../../../api/types'
import { stageStates, stageTimes } from './stages'

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

test('the stage in which a job failed is the failed one', () => {
  const ran = { wait: 0, prepare: 1, run: 2, end: 3 }
  expect(stageStates(ran, true)).toEqual({ wait: 'done', prepare: 'done', run: 'failed', end: 'done' })
  expect(stageStates(ran, false)).toEqual({ wait: 'done', prepare: 'done', run: 'done', end: 'done' })
  // An image that cannot be had: no command was begun.
  const unprepared = { wait: 0, prepare: 1, end: 3 }
  expect(stageStates(unprepared, true)).toEqual({ wait: 'done', prepare: 'failed', run: 'next', end: 'done' })
  // Stopped while it waited.
  expect(stageStates({ wait: 0, end: 1 }, false)).toMatchObject({
    wait: 'done',
    prepare: 'next',
    run: 'next',
  })
  expect(stageStates({ wait: 0, prepare: 1 }, false)).toEqual({
    wait: 'done',
    prepare: 'now',
    run: 'next',
    end: 'next',
  })
})
