// What the site offers to start from and to run on.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { ChangeSite, Cluster, EffectiveSetting, Gpu, Image, Node, Site } from './types'

export const imagesQuery = queryOptions({
  queryKey: ['images'],
  queryFn: async ({ signal }): Promise<Image[]> => dataOf(await api.GET('/api/v1/images', { signal })).items,
  staleTime: 30_000,
})

/** One that is still being saved, or was not, cannot be started from. */
export function isUsable({ saved }: Image): boolean {
  return !saved || saved.state.state === 'ready'
}

export const nodesQuery = queryOptions({
  queryKey: ['nodes'],
  queryFn: async ({ signal }): Promise<Node[]> => dataOf(await api.GET('/api/v1/nodes', { signal })).items,
  // Machines come, go and fill up without a word in the store.
  refetchInterval: 10_000,
})

/** What is there and what is taken, for everyone. */
export const clusterQuery = queryOptions({
  queryKey: ['cluster'],
  queryFn: async ({ signal }): Promise<Cluster> => dataOf(await api.GET('/api/v1/cluster', { signal })),
  refetchInterval: 5_000,
})

/** Every GPU with how busy it is. */
export const gpusQuery = queryOptions({
  queryKey: ['gpus'],
  queryFn: async ({ signal }): Promise<Gpu[]> => dataOf(await api.GET('/api/v1/gpus', { signal })).items,
  refetchInterval: 10_000,
})

/** The most that one instance can be given: it never spans nodes. */
export interface Largest {
  cpus: number
  memoryBytes: number
  gpus: number
}

export function largestOf(nodes: readonly Node[]): Largest | null {
  if (nodes.length === 0) return null
  return {
    cpus: Math.max(...nodes.map((node) => node.cpus)),
    memoryBytes: Math.max(...nodes.map((node) => node.memory_bytes)),
    gpus: Math.max(...nodes.map((node) => node.gpus)),
  }
}

/** Where the work of a site can be: its clusters, the first of them first, and the pools of one or of all. */
export function clustersOf(nodes: readonly Pick<Node, 'cluster'>[]): string[] {
  return [...new Set(nodes.map(({ cluster = '' }) => cluster))].filter((name) => name !== '')
}

export function poolsOf(nodes: readonly Pick<Node, 'cluster' | 'pools'>[], cluster = ''): string[] {
  const here = nodes.filter((node) => cluster === '' || node.cluster === cluster)
  return [...new Set(here.flatMap(({ pools = [] }) => pools))]
}

/** What the gateway runs with, for admins. */
export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: async ({ signal }): Promise<EffectiveSetting[]> =>
    dataOf(await api.GET('/api/v1/settings', { signal })).items,
})

/** What admins say of the site as a whole. */
export const siteQuery = queryOptions({
  queryKey: ['site'],
  queryFn: async ({ signal }): Promise<Site> => dataOf(await api.GET('/api/v1/site', { signal })),
  staleTime: 60_000,
})

export async function changeSite(change: ChangeSite): Promise<Site> {
  return dataOf(await api.PATCH('/api/v1/site', { body: change }))
}
