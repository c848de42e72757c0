import { expect, test } from 'vitest'

import type { Sample } from '../api/types'
import { columnsOf, csvOf, stepOf } from './sample-columns'

const sample = (second: number, cpus: number): Sample => ({
  at: new Date(second * 1000).toISOString(),
  cpus,
  memory_bytes: 1,
  disk_read_bytes: 0,
  disk_written_bytes: 0,
  received_bytes: 0,
  sent_bytes: 0,
})

test('a gap stays a gap', () => {
  const { times, of } = columnsOf([sample(0, 1), sample(10, 2), sample(100, 3)], 10)
  expect(times).toEqual([0, 10, 20, 100])
  expect(of.cpus).toEqual([1, 2, null, 3])
  expect(of.gpu_busy).toEqual([null, null, null, null])
})

test('points of a week are further apart, and that is no gap', () => {
  const step = stepOf(604_800, 360)
  expect(step).toBe(1680)
  expect(columnsOf([sample(0, 1), sample(1680, 2)], step).times).toHaveLength(2)
})

test('a table for other programs', () => {
  expect(csvOf([sample(0, 1.5)])).toBe(
    'at,gpu_busy,gpu_memory_bytes,cpus,memory_bytes,disk_read_bytes,disk_written_bytes,received_bytes,sent_bytes\n' +
      '1970-01-01T00:00:00.000Z,,,1.5,1,0,0,0,0\n',
  )
})
