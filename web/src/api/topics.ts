// Which views show what: the gateway tells of a kind of things that something of it has changed, and what is open of it
// is read again.

import type { QueryClient, QueryKey } from '@tanstack/react-query'

import { readAgain } from './read-again'
import { meQuery } from './session'

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

/** The pages of what no other news is about: what is not one's own, and tasks, which are shown with their job too. What is
 * gone already is not asked for again. */
function refetchUntold(cache: QueryClient) {
  const me = cache.getQueryData(meQuery.queryKey)?.name
  for (const kind of ['instances', 'jobs']) {
    for (const { queryKey, state } of cache.getQueryCache().findAll({ queryKey: [kind, 'one'] })) {
      const { data, status } = state
      if (status !== 'success' || !isShown(data)) continue
      const anothers = data.user !== me
      if (anothers || kind === 'jobs' || data.job) void readAgain(cache, { queryKey, exact: true })
      if (anothers && kind === 'jobs') void readAgain(cache, { queryKey: ['jobs', 'events', data.id] })
    }
  }
}

/** What costs the gateway a walk, or opens something: not read again because a stream was lost. */
const ASKED_FOR: readonly unknown[] = ['changes', 'entry', 'enter', 'job-file', 'job-convert', 'app']

export function refetchAll(cache: QueryClient): Promise<void> {
  return readAgain(cache, { predicate: ({ queryKey }) => !ASKED_FOR.includes(queryKey[0]) })
}
