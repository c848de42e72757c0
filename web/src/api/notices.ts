// What admins tell everyone: announcements and the rules of the place.

import { queryOptions } from '@tanstack/react-query'

import { currentLanguage } from '../i18n/language'
import { api, dataOf } from './client'
import type { AddAnnouncement, Announcement, Bilingual, Rules } from './types'

export function announcementsQuery(which: 'now' | 'all') {
  return queryOptions({
    queryKey: ['announcements', which],
    queryFn: async ({ signal }): Promise<Announcement[]> =>
      dataOf(
        await api.GET('/api/v1/announcements', {
          params: { query: which === 'all' ? { all: true } : {} },
          signal,
        }),
      ).items,
    // Some begin and end at a time of theirs, of which there is no news.
    refetchInterval: 60_000,
  })
}

export async function addAnnouncement(wanted: AddAnnouncement): Promise<Announcement> {
  return dataOf(await api.POST('/api/v1/announcements', { body: wanted }))
}

export async function removeAnnouncement(id: number): Promise<void> {
  await api.DELETE('/api/v1/announcements/{id}', { params: { path: { id: String(id) } } })
}

export const rulesQuery = queryOptions({
  queryKey: ['rules'],
  queryFn: async ({ signal }): Promise<Rules> => dataOf(await api.GET('/api/v1/rules', { signal })),
  staleTime: 60_000,
})

export async function setRules(text: Bilingual): Promise<Rules> {
  return dataOf(await api.PUT('/api/v1/rules', { body: text }))
}

export async function acceptRules(version: number): Promise<Rules> {
  return dataOf(await api.POST('/api/v1/rules/acceptance', { body: { version } }))
}

/** The text for this reader: in their language if there is one, else in the other. */
export function textFor({ chinese = '', english = '' }: Bilingual): string {
  return (currentLanguage() === 'zh-CN' ? chinese : english) || chinese || english
}
