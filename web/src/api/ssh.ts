// The SSH door and the keys that open it.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { AddSshKey, NewSshPair, SshDoor, SshKey } from './types'

export const sshDoorQuery = queryOptions({
  queryKey: ['ssh'],
  queryFn: async ({ signal }): Promise<SshDoor> => dataOf(await api.GET('/api/v1/ssh', { signal })),
  staleTime: 300_000,
})

export const sshKeysQuery = queryOptions({
  queryKey: ['ssh-keys'],
  queryFn: async ({ signal }): Promise<SshKey[]> =>
    dataOf(await api.GET('/api/v1/me/ssh-keys', { signal })).items,
})

export async function addSshKey(wanted: AddSshKey): Promise<SshKey> {
  return dataOf(await api.POST('/api/v1/me/ssh-keys', { body: wanted }))
}

/** A pair made by the gateway, which forgets the private half with the answer. */
export async function makeSshPair(name: string): Promise<NewSshPair> {
  return dataOf(await api.POST('/api/v1/me/ssh-keys/pair', { body: { name } }))
}

export async function removeSshKey(id: string): Promise<void> {
  await api.DELETE('/api/v1/me/ssh-keys/{id}', { params: { path: { id } } })
}
