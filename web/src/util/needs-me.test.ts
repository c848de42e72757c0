import { expect, test } from 'vitest'

import type { Job } from '../api/types'
import { needsOf } from './needs-me'

const NOW = new Date('2026-01-01T12:00:00Z').getTime()
const at = (minutes: number) => new Date(NOW + minutes * 60_000).toISOString()

function job(id: string, change: Partial<Job>): Job {
  return {
    id,
    name: id,
    slug: id,
    user: 'alice',
    description: '',
    dialect: 'berth',
    priority: 5,
    interactive: false,
    keep_on_failure: false,
    goal: 'running',
    status: { state: 'running', since: at(-60) },
    attempt: 1,
    roles: [],
    tasks: [],
    actions: [],
    created_at: at(-60),
    ...change,
  }
}

test('what ends soon, what failed lately and what is kept to be looked at', () => {
  const jobs = [
    job('soon', { started_at: at(-50), time_limit_seconds: 3600 }),
    job('later', { started_at: at(-5), time_limit_seconds: 3600 }),
    job('endless', { started_at: at(-500) }),
    job('broken', { status: { state: 'failed', reason: '' }, ended_at: at(-10) }),
    job('old', { status: { state: 'failed', reason: '' }, ended_at: at(-3000) }),
    job('kept', { status: { state: 'failed', reason: '' }, ended_at: at(-1), kept_until: at(60) }),
  ]
  const needs = needsOf('alice', { instances: [], jobs, images: [] }, NOW)
  expect(needs.map(({ name, why }) => [name, why])).toEqual([
    ['soon', 'ends_soon'],
    ['broken', 'job_failed'],
    ['kept', 'kept'],
  ])
})
