// Users, groups and workspaces: for admins, and for leaders as far as their group goes.

import { type QueryClient, queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { AddUser, ChangeUser, Group, NewPassword, OwnQuota, Quota, User, Workspace } from './types'

const ALL = ['people'] as const

export const usersQuery = queryOptions({
  queryKey: [...ALL, 'users'],
  queryFn: async ({ signal }): Promise<User[]> => dataOf(await api.GET('/api/v1/users', { signal })).items,
})

export const groupsQuery = queryOptions({
  queryKey: [...ALL, 'groups'],
  queryFn: async ({ signal }): Promise<Group[]> => dataOf(await api.GET('/api/v1/groups', { signal })).items,
})

export const workspacesQuery = queryOptions({
  queryKey: [...ALL, 'workspaces'],
  queryFn: async ({ signal }): Promise<Workspace[]> =>
    dataOf(await api.GET('/api/v1/workspaces', { signal })).items,
})

export function refetchPeople(cache: QueryClient): Promise<void> {
  return cache.invalidateQueries({ queryKey: ALL })
}

const at = (name: string) => ({ params: { path: { name } } })

export async function addUser(wanted: AddUser): Promise<NewPassword> {
  return dataOf(await api.POST('/api/v1/users', { body: wanted }))
}

export async function changeUser(name: string, wanted: ChangeUser): Promise<User> {
  return dataOf(await api.PATCH('/api/v1/users/{name}', { ...at(name), body: wanted }))
}

export async function resetPassword(name: string): Promise<NewPassword> {
  return dataOf(await api.POST('/api/v1/users/{name}/password', at(name)))
}

export async function removeUser(name: string): Promise<User> {
  return dataOf(await api.DELETE('/api/v1/users/{name}', at(name)))
}

export async function restoreUser(name: string): Promise<User> {
  return dataOf(await api.POST('/api/v1/users/{name}/restore', at(name)))
}

export type NamedKind = 'group' | 'workspace'

export async function addNamed(kind: NamedKind, name: string): Promise<void> {
  if (kind === 'group') await api.POST('/api/v1/groups', { body: { name } })
  else await api.POST('/api/v1/workspaces', { body: { name } })
}

export async function removeNamed(kind: NamedKind, name: string): Promise<void> {
  if (kind === 'group') await api.DELETE('/api/v1/groups/{name}', at(name))
  else await api.DELETE('/api/v1/workspaces/{name}', at(name))
}

export async function setMember(workspace: string, user: string, member: boolean): Promise<void> {
  const init = { params: { path: { name: workspace, user } } }
  if (member) await api.PUT('/api/v1/workspaces/{name}/members/{user}', init)
  else await api.DELETE('/api/v1/workspaces/{name}/members/{user}', init)
}

/** Whose quota it is. */
export interface QuotaOwner {
  kind: 'user' | 'group'
  name: string
}

export function quotaQuery({ kind, name }: QuotaOwner) {
  return queryOptions({
    queryKey: [...ALL, 'quota', kind, name],
    queryFn: async ({ signal }): Promise<Quota> =>
      dataOf(
        kind === 'user'
          ? await api.GET('/api/v1/users/{name}/quota', { ...at(name), signal })
          : await api.GET('/api/v1/groups/{name}/quota', { ...at(name), signal }),
      ),
  })
}

/** What one and one's group may hold, hold and wait for. */
export const ownQuotaQuery = queryOptions({
  queryKey: [...ALL, 'own-quota'],
  queryFn: async ({ signal }): Promise<OwnQuota> => dataOf(await api.GET('/api/v1/me/quota', { signal })),
  refetchInterval: 10_000,
})

export async function setQuota({ kind, name }: QuotaOwner, quota: Quota): Promise<Quota> {
  const init = { ...at(name), body: quota }
  return dataOf(
    kind === 'user'
      ? await api.PUT('/api/v1/users/{name}/quota', init)
      : await api.PUT('/api/v1/groups/{name}/quota', init),
  )
}
