// Which views show what: the gateway tells of a kind of things that something of it has changed, and what is open of it
// is read again.

import type { QueryClient, QueryKey } from '@tanstack/react-query'

import { readAgain } from './read-again'

const VIEWS: Record<string, readonly QueryKey[]> = {
  work: [
    ['instances', 'everyones'],
    ['jobs', 'list', 'everyones'],
    // Of somebody else's there is no other news.
    ['instances', 'one'],
    ['jobs', 'one'],
    ['jobs', 'events'],
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
}

/** What costs the gateway a walk, or opens something: not read again because a stream was lost. */
const ASKED_FOR: readonly unknown[] = ['changes', 'entry', 'enter', 'job-file', 'job-convert', 'app']

export function refetchAll(cache: QueryClient): Promise<void> {
  return readAgain(cache, { predicate: ({ queryKey }) => !ASKED_FOR.includes(queryKey[0]) })
}
