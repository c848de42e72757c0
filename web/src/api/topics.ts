// Which views show what: the gateway tells of a kind of things that something of it has changed, and what is open of it
// is read again.

import type { QueryClient, QueryKey } from '@tanstack/react-query'

import { instanceQuery } from './instances'
import { canBeEntered } from './jobs'
import { readAgain } from './read-again'
import { meQuery } from './session'
import type { Job } from './types'

const VIEWS: Record<string, readonly QueryKey[]> = {
  work: [
    ['instances', 'everyones'],
    ['jobs', 'list', 'everyones'],
    ['queue'],
    ['cluster'],
    ['gpus'],
    ['people', 'own-quota'],
  ],
  images: [['images']],
  people: [['people'], ['me']],
  notices: [['announcements'], ['rules']],
  site: [['site'], ['settings']],
  audit: [['audit']],
  keys: [['ssh-keys'], ['tokens'], ['secrets']],
}

export function refetchTopics(cache: QueryClient, topics: readonly string[]) {
  for (const queryKey of topics.flatMap((topic) => VIEWS[topic] ?? [])) {
    void readAgain(cache, { queryKey })
  }
  if (topics.includes('work')) refetchUntold(cache)
}

interface Shown {
  id: string
  user: string
  /** The job whose task it is. */
  job?: unknown
}

function isShown(value: unknown): value is Shown {
  return typeof value === 'object' && value !== null && 'id' in value && 'user' in value
}

function isJob(value: unknown): value is Job {
  return isShown(value) && 'tasks' in value
}

/** What is open of a kind, with the key by which it was asked for. What is gone already is not asked for again. */
function open<T>(cache: QueryClient, kind: string, is: (value: unknown) => value is T) {
  return cache
    .getQueryCache()
    .findAll({ queryKey: [kind, 'one'], predicate: ({ state }) => state.status === 'success' })
    .flatMap(({ queryKey, state: { data } }) => (is(data) ? [{ queryKey, data }] : []))
}

/** The pages of what no other news is about: what is not one's own, and tasks, which are shown with their job too. */
function refetchUntold(cache: QueryClient) {
  const me = cache.getQueryData(meQuery.queryKey)?.name
  const jobs = open(cache, 'jobs', isJob)
  for (const { queryKey, data } of jobs) {
    void readAgain(cache, { queryKey, exact: true }).then(() => refetchTasks(cache, queryKey))
    if (data.user !== me) void readAgain(cache, { queryKey: ['jobs', 'events', data.id] })
  }
  for (const { queryKey, data } of open(cache, 'instances', isShown)) {
    const withJob = jobs.some((job) => job.data.id === data.job)
    if (!withJob && (data.job || data.user !== me)) void readAgain(cache, { queryKey, exact: true })
  }
}

/** After their job, which says whether they are still there. */
function refetchTasks(cache: QueryClient, queryKey: QueryKey) {
  const job = cache.getQueryData(queryKey)
  if (!isJob(job)) return
  for (const { instance } of job.tasks.filter((task) => canBeEntered(job, task))) {
    if (instance) void readAgain(cache, { queryKey: instanceQuery(instance).queryKey, exact: true })
  }
}

/** What costs the gateway a walk, or opens something: not read again because a stream was lost. */
const ASKED_FOR: readonly unknown[] = ['changes', 'entry', 'enter', 'job-file', 'job-convert', 'app']

export function refetchAll(cache: QueryClient): Promise<void> {
  return readAgain(cache, { predicate: ({ queryKey }) => !ASKED_FOR.includes(queryKey[0]) })
}
