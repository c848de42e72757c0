// Secrets: one's own, and for admins the site's. Values go to the gateway and never come back.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { Secret, SetSecret } from './types'

/** Whose secrets. */
export type Keeper = 'me' | 'site'

export const secretsQuery = (keeper: Keeper) =>
  queryOptions({
    queryKey: ['secrets', keeper],
    queryFn: async ({ signal }): Promise<Secret[]> =>
      dataOf(
        keeper === 'me'
          ? await api.GET('/api/v1/me/secrets', { signal })
          : await api.GET('/api/v1/site/secrets', { signal }),
      ).items,
  })

export async function setSecret(keeper: Keeper, secret: string, body: SetSecret): Promise<Secret> {
  const wanted = { params: { path: { secret } }, body }
  return dataOf(
    keeper === 'me'
      ? await api.PUT('/api/v1/me/secrets/{secret}', wanted)
      : await api.PUT('/api/v1/site/secrets/{secret}', wanted),
  )
}

export async function removeSecret(keeper: Keeper, secret: string): Promise<void> {
  const which = { params: { path: { secret } } }
  await (keeper === 'me'
    ? api.DELETE('/api/v1/me/secrets/{secret}', which)
    : api.DELETE('/api/v1/site/secrets/{secret}', which))
}
