import { expect, test } from 'vitest'

import type { Usage } from '../api/types'
import { auditCsv } from './audit-csv'
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

test('a line of the audit log is a row, with its details in one cell', () => {
  const line = {
    id: 7,
    at: '2026-01-01T00:00:00Z',
    actor: '=cmd',
    act: 'sign_in',
    result: 'refused',
  } as const
  expect(auditCsv([{ ...line, details: { name: 'train', why: 'a, b' }, source: '10.0.0.1' }])).toBe(
    'id,at,actor,act,result,object,details,source,request_id\r\n' +
      '7,2026-01-01T00:00:00Z,\'=cmd,sign_in,refused,,"name=train why=a, b",10.0.0.1,\r\n',
  )
})
