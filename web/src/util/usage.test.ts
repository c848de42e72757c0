import { expect, test } from 'vitest'

import type { Usage } from '../api/types'
import { sumsOf, usageCsv } from './usage'

const ROWS: Usage[] = [
  { user: 'alice', group: 'vision', gpu_model: 'A100', gpu_hours: 10, cpu_hours: 40, starts: 2 },
  { user: 'alice', group: 'vision', gpu_hours: 0, cpu_hours: 5, starts: 1, image_bytes: 100 },
  { user: 'bob', group: 'vision', gpu_model: 'A100', gpu_hours: 20, cpu_hours: 80, starts: 1 },
]

test('sums are by whatever is asked for, the most first', () => {
  expect(sumsOf(ROWS, 'user')).toEqual([
    { name: 'bob', gpuHours: 20, cpuHours: 80, starts: 1, imageBytes: 0 },
    { name: 'alice', gpuHours: 10, cpuHours: 45, starts: 3, imageBytes: 100 },
  ])
  expect(sumsOf(ROWS, 'group')).toMatchObject([{ name: 'vision', gpuHours: 30, imageBytes: 100 }])
  expect(sumsOf(ROWS, 'model').map(({ name }) => name)).toEqual(['A100', ''])
})

test('a name is no formula and no two cells to a spreadsheet', () => {
  const row = { group: 'a, "b"', gpu_model: '=1+1', gpu_hours: 1.5, cpu_hours: 0, starts: 0 }
  expect(usageCsv([{ ...row, user: 'carol' }])).toBe(
    'user,group,gpu_model,gpu_hours,cpu_hours,starts,image_bytes\r\ncarol,"a, ""b""",\'=1+1,1.5,0,0,\r\n',
  )
})
