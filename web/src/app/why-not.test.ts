import { expect, test } from 'vitest'

import type { Instance, InstanceAction, Job, JobAction, Me, Role } from '../api/types'
import { type Why, whyNot, whyNotJob } from './why-not'

const me = (name: string, role: Role = 'user'): Me => ({
  name,
  role,
  group: 'lab',
  must_change_password: false,
})
const RUNNING = { state: 'running', since: '2026-01-01T00:00:00Z' } as const

test('what an instance lacks is not put down to its state when that is not why', () => {
  const check = (who: Me, action: InstanceAction, why: Why, change: Partial<Instance> = {}) => {
    const instance: Instance = {
      id: 'ins_1',
      name: 'train',
      slug: 'train',
      user: 'alice',
      image: 'base',
      cpus: 1,
      memory_bytes: 1,
      shm_bytes: 1,
      gpus: 0,
      env: {},
      command: [],
      goal: 'running',
      status: RUNNING,
      actions: [],
      created_at: RUNNING.since,
      ...change,
    }
    expect(whyNot(instance, action, who), `${action} by ${who.name}`).toBe(why)
  }
  const task = { job: 'job_1' }
  check(me('alice'), 'start', 'state')
  check(me('alice'), 'restart', 'task', task)
  check(me('alice'), 'delete', 'task', task)
  check(me('alice'), 'terminal', 'state', { ...task, status: { state: 'starting' } })
  check(me('alice'), 'start', 'state', task)
  check(me('alice'), 'start', 'task_over', { ...task, status: { state: 'succeeded' } })
  check(me('lea', 'leader'), 'delete', 'owner_or_admin')
  check(me('lea', 'leader'), 'stop', 'state', { status: { state: 'stopped' } })
  check(me('lea', 'leader'), 'terminal', 'owner')
  check(me('root', 'admin'), 'logs', 'owner')
  check(me('root', 'admin'), 'delete', 'task', task)
})

test('what a job lacks is its owner’s, an administrator’s, or waits for another state', () => {
  const check = (who: Me, action: JobAction, why: Why) => {
    const job: Job = {
      id: 'job_1',
      name: 'train',
      slug: 'train',
      user: 'alice',
      description: '',
      dialect: 'berth',
      priority: 5,
      interactive: false,
      keep_on_failure: false,
      goal: 'running',
      status: RUNNING,
      attempt: 1,
      roles: [],
      tasks: [],
      actions: [],
      created_at: RUNNING.since,
    }
    expect(whyNotJob(job, action, who), `${action} by ${who.name}`).toBe(why)
  }
  check(me('alice'), 'logs', 'state')
  check(me('lea', 'leader'), 'stop', 'state')
  check(me('lea', 'leader'), 'change', 'owner_or_admin')
  check(me('lea', 'leader'), 'rerun', 'owner')
  check(me('root', 'admin'), 'logs', 'owner')
  check(me('root', 'admin'), 'delete', 'state')
})
