// One's own API tokens.

import { queryOptions } from '@tanstack/react-query'

import { api, dataOf } from './client'
import type { AddToken, ApiToken, NewToken } from './types'

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: async ({ signal }): Promise<ApiToken[]> =>
    dataOf(await api.GET('/api/v1/tokens', { signal })).items,
})

export async function addToken(wanted: AddToken): Promise<NewToken> {
  return dataOf(await api.POST('/api/v1/tokens', { body: wanted }))
}

export async function removeToken(id: string): Promise<void> {
  await api.DELETE('/api/v1/tokens/{id}', { params: { path: { id } } })
}
