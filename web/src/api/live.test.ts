// @vitest-environment happy-dom
import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { eventually } from '../testing/eventually'
import { EventParser } from './event-stream'
import { instanceChanged, instanceDeleted, instanceQuery, instancesQuery, withInstance } from './instances'
import { Live } from './live'
import { refetchAll, refetchTopics } from './topics'
import type { Instance } from './types'

function instance(id: string, created: string, state: 'running' | 'stopping' = 'running'): Instance {
  return {
    id,
    name: id,
    slug: id,
    user: 'alice',
    image: 'base',
    cpus: 1,
    memory_bytes: 1,
    shm_bytes: 1,
    gpus: 0,
    env: {},
    command: [],
    goal: 'running',
    status: state === 'running' ? { state, since: created } : { state },
    actions: [],
    created_at: created,
  }
}

describe('EventParser', () => {
  test('puts events together however they are cut', () => {
    const text = ': hello\n\nevent: instance\ndata: {"a":1}\n\n: beat\n\ndata: x\ndata: y\r\n\r\n'
    for (const size of [1, 3, 7, text.length]) {
      const parser = new EventParser()
      const events = []
      for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)))
      expect(events, `in pieces of ${size}`).toEqual([
        { event: 'instance', data: '{"a":1}' },
        { event: 'message', data: 'x\ny' },
      ])
    }
  })
})

describe('withInstance', () => {
  const [newer, older] = [instance('b', '2026-01-02'), instance('a', '2026-01-01')]
  test('replaces in place', () => {
    const changed = instance('a', '2026-01-01', 'stopping')
    expect(withInstance([newer, older], changed)).toEqual([newer, changed])
  })
  test('puts a new one at its age', () => {
    expect(withInstance([older], newer)).toEqual([newer, older])
    expect(withInstance([newer], older)).toEqual([newer, older])
    expect(withInstance([], older)).toEqual([older])
  })
})

test('events reach the list and the page, and nothing that was never asked for', () => {
  const cache = new QueryClient()
  const [first, second] = [instance('b', '2026-01-02'), instance('a', '2026-01-01')]
  instanceChanged(cache, first)
  expect(cache.getQueryData(instancesQuery.queryKey)).toBeUndefined()

  cache.setQueryData(instancesQuery.queryKey, [first, second])
  cache.setQueryData(instanceQuery('a').queryKey, second)
  const changed = instance('a', '2026-01-01', 'stopping')
  instanceChanged(cache, changed)
  expect(cache.getQueryData(instancesQuery.queryKey)).toEqual([first, changed])
  expect(cache.getQueryData(instanceQuery('a').queryKey)).toEqual(changed)

  instanceDeleted(cache, 'a')
  expect(cache.getQueryData(instancesQuery.queryKey)).toEqual([first])
  expect(cache.getQueryState(instanceQuery('a').queryKey)?.isInvalidated).toBe(true)
})

test('what was asked for before the news, and answered after them, is asked again', async () => {
  const cache = new QueryClient()
  const now: { status: 'stopping' | 'running' } = { status: 'stopping' }
  const asked: (() => void)[] = []
  const view = new QueryObserver(cache, {
    ...instanceQuery('a'),
    queryFn: () => {
      const then = instance('a', '2026-01-01', now.status)
      return new Promise<Instance>((resolve) => asked.push(() => resolve(then)))
    },
  })
  const leave = view.subscribe(() => undefined)
  now.status = 'running'
  instanceChanged(cache, instance('a', '2026-01-01'))
  asked.shift()?.()
  await eventually(() => expect(asked).toHaveLength(1))
  asked.shift()?.()
  await eventually(() => expect(view.getCurrentResult().data?.status.state).toBe('running'))
  leave()
})

test('news of a kind makes its views be read again, and no others', async () => {
  const cache = new QueryClient()
  const keys = [['queue'], ['people', 'users'], ['changes', 'a']]
  for (const key of keys) cache.setQueryData(key, 1)
  const stale = () => keys.map((key) => cache.getQueryState(key)?.isInvalidated)
  refetchTopics(cache, ['work', 'something new'])
  expect(stale()).toEqual([true, false, false])
  await refetchAll(cache)
  expect(stale()).toEqual([true, true, false])
})

test('the page of what is not one’s own is read again at news of any work, one’s own has news of its own', () => {
  const cache = new QueryClient()
  const keys = [instanceQuery('mine').queryKey, instanceQuery('theirs').queryKey]
  cache.setQueryData(['me'], { name: 'alice' })
  cache.setQueryData(instanceQuery('mine').queryKey, instance('mine', '2026-01-01'))
  cache.setQueryData(instanceQuery('theirs').queryKey, { ...instance('theirs', '2026-01-01'), user: 'bob' })
  refetchTopics(cache, ['work'])
  expect(keys.map((key) => cache.getQueryState(key)?.isInvalidated)).toEqual([false, true])
})

test('a task that is shown with its job is read after it, and not once it has ended', async () => {
  const cache = new QueryClient()
  cache.setQueryData(['me'], { name: 'alice' })
  const tasks = ['goes_on', 'ended'].map((id) => ({ instance: id, end: undefined }))
  const job = { id: 'job', user: 'alice', tasks }
  const now = {
    ...job,
    tasks: tasks.map((task) => (task.instance === 'ended' ? { ...task, end: {} } : task)),
  }
  const read: string[] = []
  const views: [string[], unknown, unknown][] = [
    [['instances', 'one', 'goes_on'], { ...instance('goes_on', '2026-01-01'), job: 'job' }, undefined],
    [['instances', 'one', 'ended'], { ...instance('ended', '2026-01-01'), job: 'job' }, undefined],
    [['jobs', 'one', 'job'], job, now],
  ]
  const leave = views.map(([queryKey, before, after]) => {
    cache.setQueryData(queryKey, before)
    const queryFn = () => {
      read.push(queryKey.join(' '))
      return Promise.resolve(after ?? before)
    }
    return new QueryObserver(cache, { queryKey, queryFn, staleTime: Infinity }).subscribe(() => undefined)
  })
  refetchTopics(cache, ['work'])
  await eventually(() => expect(read).toHaveLength(2))
  expect(read).toEqual(['jobs one job', 'instances one goes_on'])
  for (const end of leave) end()
})

describe('a stream that is lost', () => {
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  test('makes the views that are open poll, though nothing else changes', async () => {
    vi.useFakeTimers()
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('no network')))
    const cache = new QueryClient()
    const live = new Live(cache)
    const read = vi.fn<() => Promise<number>>().mockResolvedValue(1)
    const view = new QueryObserver(cache, {
      queryKey: ['view'],
      queryFn: read,
      refetchInterval: () => (live.current() === 'lost' ? 5_000 : false),
    })
    const leave = view.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(read).toHaveBeenCalledTimes(1)
    const stop = live.start()
    await vi.advanceTimersByTimeAsync(16_000)
    expect(live.current()).toBe('lost')
    expect(read.mock.calls.length).toBeGreaterThanOrEqual(3)
    stop()
    leave()
  })
})

describe('a tab that nobody looks at', () => {
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  test('gives its stream back though it was never shown, and takes it again when it is', async () => {
    vi.useFakeTimers()
    const streams: AbortSignal[] = []
    vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
      streams.push(signal)
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new DOMException('given up', 'AbortError')))
      })
    })
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true)
    const open = () => streams.filter((signal) => !signal.aborted).length
    const stop = new Live(new QueryClient()).start()
    expect(open()).toBe(1)
    await vi.advanceTimersByTimeAsync(70_000)
    expect(open()).toBe(0)
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(70_000)
    expect(open()).toBe(0)
    hidden.mockReturnValue(false)
    document.dispatchEvent(new Event('visibilitychange'))
    expect(open()).toBe(1)
    stop()
  })
})
