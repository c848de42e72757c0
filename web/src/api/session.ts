// Who is signed in.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { Me } from './types'

export async function whoAmI(signal?: AbortSignal): Promise<Me> {
  return dataOf(await api.GET('/api/v1/me', { signal }))
}

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => whoAmI(signal),
  staleTime: Infinity,
})

export async function signIn(user: string, password: string): Promise<Me> {
  return dataOf(await api.POST('/api/v1/session', { body: { user, password, client: 'browser' } })).me
}

/** Signs in with a ticket that `berth open` or another browser has made. */
export async function signInByTicket(ticket: string): Promise<Me> {
  return dataOf(await api.POST('/api/v1/session', { body: { ticket } })).me
}

export async function signOut(): Promise<void> {
  await api.DELETE('/api/v1/session')
}

export async function setLanguage(language: NonNullable<Me['language']>): Promise<void> {
  await api.PUT('/api/v1/me/language', { body: { language } })
}

export async function changePassword(passwords: { old: string; new: string }): Promise<void> {
  await api.PUT('/api/v1/me/password', { body: passwords })
}
