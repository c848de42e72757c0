// Jobs: reading, submitting, asking, and keeping the cache true while events arrive.

import { type QueryClient, queryOptions } from '@tanstack/react-query'

import { allPages, ApiError, api, dataOf } from './client'
import { readAgain, readAgainIfUnderWay } from './read-again'
import type { ChangeJob, Converted, DryRun, Job, JobEventAt, JobTask, SubmitJob } from './types'

const ALL = ['jobs'] as const
const LIST = [...ALL, 'list'] as const
const ONE = [...ALL, 'one'] as const

export function jobsQuery(whose: 'own' | 'everyones') {
  return queryOptions({
    queryKey: [...LIST, whose],
    queryFn: ({ signal }): Promise<Job[]> =>
      allPages(async (page) => {
        const query = { all: whose === 'everyones', ...page }
        return dataOf(await api.GET('/api/v1/jobs', { params: { query }, signal }))
      }),
  })
}

export function jobQuery(name: string) {
  return queryOptions({
    queryKey: [...ONE, name],
    queryFn: async ({ signal }): Promise<Job> =>
      dataOf(await api.GET('/api/v1/jobs/{name}', { params: { path: { name } }, signal })),
  })
}

export function jobEventsQuery(id: string) {
  return queryOptions({
    queryKey: [...ALL, 'events', id],
    queryFn: async ({ signal }): Promise<JobEventAt[]> =>
      dataOf(await api.GET('/api/v1/jobs/{name}/events', { params: { path: { name: id } }, signal })).items,
  })
}

/** The file as it was submitted, byte for byte. */
export function jobFileQuery(name: string) {
  return queryOptions({
    queryKey: ['job-file', name],
    queryFn: async ({ signal }): Promise<string> =>
      dataOf(
        await api.GET('/api/v1/jobs/{name}/file', { params: { path: { name } }, parseAs: 'text', signal }),
      ),
    staleTime: Infinity,
  })
}

export async function submitJob(wanted: SubmitJob): Promise<Job> {
  return dataOf(await api.POST('/api/v1/jobs', { body: wanted }))
}

/** What would become of it; an error is what is wrong with the file. */
export function dryRunQuery(wanted: SubmitJob) {
  return queryOptions({
    queryKey: ['job-dry-run', wanted],
    queryFn: async ({ signal }): Promise<DryRun> =>
      dataOf(await api.POST('/api/v1/jobs:dryRun', { body: wanted, signal })),
    retry: (failures, error) => failures < 2 && error instanceof ApiError && error.status === 0,
    staleTime: 5_000,
    refetchInterval: false,
  })
}

/** What a file means here, with all that is to be said about it. */
export function convertQuery(file: string) {
  return queryOptions({
    queryKey: ['job-convert', file],
    queryFn: async ({ signal }): Promise<Converted> =>
      dataOf(await api.POST('/api/v1/jobs:convert', { body: { file }, signal })),
    staleTime: Infinity,
    refetchInterval: false,
  })
}

const at = (id: string) => ({ params: { path: { name: id } } })

/** Asks by id: a name could meanwhile stand for another job. */
export async function stopJob(id: string): Promise<Job> {
  return dataOf(await api.POST('/api/v1/jobs/{name}/stop', at(id)))
}

/** The same file once more, as a job with the next free name. */
export async function rerunJob(id: string): Promise<Job> {
  return dataOf(await api.POST('/api/v1/jobs/{name}/rerun', { ...at(id), body: {} }))
}

export async function deleteJob(id: string): Promise<Job> {
  return dataOf(await api.DELETE('/api/v1/jobs/{name}', at(id)))
}

export async function changeJob(id: string, change: ChangeJob): Promise<Job> {
  return dataOf(await api.PATCH('/api/v1/jobs/{name}', { ...at(id), body: change }))
}

/** Whether a task has a machine that stays for now: one that ended goes with its job, unless its files are kept. */
export function canBeEntered(job: Job, task: JobTask): boolean {
  return typeof task.instance === 'string' && (!task.end || typeof job.kept_until === 'string')
}

export function refetchJobs(cache: QueryClient): Promise<void> {
  return readAgain(cache, { queryKey: ALL })
}

/** What an event says of a job goes into every view of it; what else it may touch is read again. */
export function jobChanged(cache: QueryClient, job: Job) {
  cache.setQueriesData<Job[]>({ queryKey: LIST }, (list) =>
    list?.map((other) => (other.id === job.id ? job : other)),
  )
  cache.setQueriesData<Job>({ queryKey: ONE }, (one) => (one?.id === job.id ? job : one))
  const known = cache
    .getQueriesData<Job[]>({ queryKey: LIST })
    .every(([, list]) => list === undefined || list.some((other) => other.id === job.id))
  if (!known) void readAgain(cache, { queryKey: LIST })
  void readAgain(cache, { queryKey: [...ALL, 'events', job.id] })
  readAgainIfUnderWay(cache, { queryKey: ALL })
}

export function jobDeleted(cache: QueryClient, id: string) {
  cache.setQueriesData<Job[]>({ queryKey: LIST }, (list) => list?.filter((job) => job.id !== id))
  void readAgain(cache, { queryKey: ONE })
  readAgainIfUnderWay(cache, { queryKey: LIST })
}
