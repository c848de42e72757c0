// Instances: reading, asking, and keeping the cache true while events arrive.

import { type QueryClient, queryOptions } from '@tanstack/react-query'

import { allPages, ApiError, api, dataOf } from './client'
import { readAgain, readAgainIfUnderWay } from './read-again'
import type { CreateInstance, DryRun, Instance } from './types'

/** What can be asked of an existing instance with one request. */
export type Request = 'stop' | 'restart' | 'delete'

const ALL = ['instances'] as const
const LIST = [...ALL, 'list'] as const
const ONE = [...ALL, 'one'] as const

function listed(all: boolean, signal: AbortSignal): Promise<Instance[]> {
  return allPages(async (page) =>
    dataOf(await api.GET('/api/v1/instances', { params: { query: { all, ...page } }, signal })),
  )
}

export const instancesQuery = queryOptions({
  queryKey: LIST,
  queryFn: ({ signal }) => listed(false, signal),
})

/** Those of everybody, as far as one oversees them. Events tell of them too. */
export const everyonesInstancesQuery = queryOptions({
  queryKey: [...ALL, 'everyones'],
  queryFn: ({ signal }) => listed(true, signal),
  refetchInterval: 10_000,
})

/** `name` may be the name, the slug or the id. */
export function instanceQuery(name: string) {
  return queryOptions({
    queryKey: [...ONE, name],
    queryFn: async ({ signal }): Promise<Instance> =>
      dataOf(await api.GET('/api/v1/instances/{name}', { params: { path: { name } }, signal })),
  })
}

export async function createInstance(request: CreateInstance): Promise<Instance> {
  return dataOf(await api.POST('/api/v1/instances', { body: request }))
}

/** What would become of it; an error is what is wrong with it. */
export function dryRunInstanceQuery(wanted: CreateInstance) {
  return queryOptions({
    queryKey: ['instance-dry-run', wanted],
    queryFn: async ({ signal }): Promise<DryRun> =>
      dataOf(await api.POST('/api/v1/instances:dryRun', { body: wanted, signal })),
    retry: (failures, error) => failures < 2 && error instanceof ApiError && error.status === 0,
    staleTime: 5_000,
    refetchInterval: false,
  })
}

/** `gpus` are for what a failed task left, which is opened without any otherwise. */
export async function startInstance(id: string, gpus?: number): Promise<Instance> {
  const params = { path: { name: id }, query: { gpus } }
  return dataOf(await api.POST('/api/v1/instances/{name}/start', { params }))
}

/** Asks by id: a name could meanwhile stand for another instance. */
export async function ask(request: Request, id: string): Promise<Instance> {
  const init = { params: { path: { name: id } } }
  switch (request) {
    case 'stop':
      return dataOf(await api.POST('/api/v1/instances/{name}/stop', init))
    case 'restart':
      return dataOf(await api.POST('/api/v1/instances/{name}/restart', init))
    case 'delete':
      return dataOf(await api.DELETE('/api/v1/instances/{name}', init))
  }
}

export function refetchInstances(cache: QueryClient): Promise<void> {
  return readAgain(cache, { queryKey: ALL })
}

export function instanceChanged(cache: QueryClient, instance: Instance) {
  cache.setQueryData<Instance[]>(LIST, (list) => list && withInstance(list, instance))
  cache.setQueriesData<Instance>({ queryKey: ONE }, (one) => (one?.id === instance.id ? instance : one))
  readAgainIfUnderWay(cache, { queryKey: ALL })
}

export function instanceDeleted(cache: QueryClient, id: string) {
  cache.setQueryData<Instance[]>(LIST, (list) => list?.filter((instance) => instance.id !== id))
  const gone = cache.getQueriesData<Instance>({ queryKey: ONE }).filter(([, one]) => one?.id === id)
  for (const [queryKey] of gone) void cache.invalidateQueries({ queryKey })
  readAgainIfUnderWay(cache, { queryKey: ALL })
}

/** The list with `instance` in its place: where it was, or at its age if it is new. */
export function withInstance(list: Instance[], instance: Instance): Instance[] {
  if (list.some((other) => other.id === instance.id)) {
    return list.map((other) => (other.id === instance.id ? instance : other))
  }
  const older = list.findIndex((other) => other.created_at <= instance.created_at)
  return older === -1 ? [...list, instance] : list.toSpliced(older, 0, instance)
}
