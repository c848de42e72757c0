// The tools in an instance: JupyterLab, VS Code, TensorBoard, the desktop, and whatever listens on a port.

import { queryOptions } from '@tanstack/react-query'

import { readAppHost } from '../util/path-builder'
import { api, ApiError, dataOf, socketAddress } from './client'
import { onDoubt } from './link'
import { isPending, PREPARING_POLL_MS } from './preparing'
import { streamMessage } from './socket'
import type { App, CreateTensorboard, Instance } from './types'

/** The apps that the instance's agent starts. */
export type AppName = 'lab' | 'ide' | 'tensorboard' | 'desktop'
export type AppAct = 'start' | 'install' | 'stop'

/** While something moves, people watch the seconds. */
const WATCH_MS = 500

export function appQuery(instance: string, app: AppName, folder?: string) {
  return queryOptions({
    queryKey: ['app', instance, app, folder ?? ''],
    queryFn: async ({ signal }): Promise<App> =>
      dataOf(
        await api.GET('/api/v1/instances/{name}/apps/{app}', {
          params: { path: { name: instance, app }, query: { folder } },
          signal,
        }),
      ),
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchInterval: ({ state: { data } }) => {
      if (data?.state === 'starting' || data?.state === 'installing') return WATCH_MS
      return data?.preparing && isPending(data.preparing) ? PREPARING_POLL_MS : false
    },
  })
}

export async function actOnApp(instance: string, app: AppName, act: AppAct, folder?: string): Promise<App> {
  return dataOf(
    await api.POST('/api/v1/instances/{name}/apps/{app}', {
      params: { path: { name: instance, app } },
      body: { act, folder },
    }),
  )
}

/** Where an app is to be entered: an address that signs in, once and soon. `app` may be a port. */
export async function openApp(
  instance: string,
  app: string,
  where: { path?: string; folder?: string } = {},
): Promise<string> {
  const answer = await api.POST('/api/v1/instances/{name}/apps/{app}/open', {
    params: { path: { name: instance, app } },
    body: where,
  })
  return dataOf(answer).url
}

/** Whether an entry leads to the app at `host`, as `lab--train--alice`, by its name or by its path. */
export function leadsTo(entry: string, host: string): boolean {
  const { hostname, pathname } = new URL(entry)
  const named = readAppHost(host)
  if (named === null) return false
  const { app, instance, user = '-' } = named
  return hostname.split('.')[0] === host || pathname.startsWith(`/${user}/${instance}/${app}/`)
}

/** An instance of its own that shows a folder. */
export async function createTensorboard(body: CreateTensorboard): Promise<Instance> {
  return dataOf(await api.POST('/api/v1/tensorboards', { body }))
}

/** The bytes of a port. The gateway says in words why there are none. */
export function openPort(instance: string, port: number, refused: (error: ApiError) => void): WebSocket {
  const socket = new WebSocket(
    socketAddress(`/api/v1/instances/${encodeURIComponent(instance)}/ports/${port}`),
  )
  let heardAt = Date.now()
  const undoubt = onDoubt((since) => {
    if (heardAt <= since) socket.close()
  })
  socket.addEventListener('close', undoubt)
  socket.addEventListener('message', (message: MessageEvent<unknown>) => {
    heardAt = Date.now()
    if (typeof message.data !== 'string') return
    message.stopImmediatePropagation()
    const told = streamMessage(message.data)
    if (told !== null && 'error' in told) refused(new ApiError(0, told.error))
  })
  return socket
}
