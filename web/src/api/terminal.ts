// A persistent terminal of an instance. The shell lives there; this is only a window on it, and may be closed and
// opened again: the instance then sends what the screen showed.

import { queryOptions } from '@tanstack/react-query'

import { never } from '../util/never'
import { ApiError, api, dataOf } from './client'
import { LastingSocket, streamMessage } from './socket'
import type { ProblemCode, ProcessExit, Terminal } from './types'

export type TerminalState =
  | { at: 'connecting' }
  | { at: 'open' }
  | { at: 'lost'; error?: ApiError }
  | { at: 'ended'; exit: ProcessExit }
  | { at: 'refused'; error: ApiError }

/** The side that shows. */
export interface Screen {
  size: () => { cols: number; rows: number }
  /** Forget what is shown: all of it is about to be sent again. */
  clear: () => void
  /** Shows bytes, and says when they have been dealt with. */
  write: (bytes: Uint8Array<ArrayBuffer>, done: () => void) => void
}

/** The side that types. */
export interface Wire {
  send: (bytes: Uint8Array<ArrayBuffer>) => void
  resize: (size: { cols: number; rows: number }) => void
  close: () => void
}

/** So many bytes are dealt with before the server is told: a quarter of what it lets be under way. */
const ACK_EVERY = 64 * 1024

/** Troubles that pass by themselves, so that trying again is right. */
const PASSING: readonly ProblemCode[] = ['agent_unreachable', 'cluster_unreachable', 'engine_unreachable']

export function openTerminal(
  instance: string,
  terminal: string,
  screen: Screen,
  become: (state: TerminalState) => void,
): Wire {
  become({ at: 'connecting' })
  let trouble: ApiError | undefined
  let over = false
  // A browser cannot stop a WebSocket, so the server is told how far the screen is. Each connection counts anew.
  let connection = 0
  let unsaid = 0
  const show = (bytes: Uint8Array<ArrayBuffer>) => {
    const of = connection
    screen.write(bytes, () => {
      if (of !== connection) return
      unsaid += bytes.length
      if (unsaid < ACK_EVERY) return
      socket.send(JSON.stringify({ ack: unsaid }))
      unsaid = 0
    })
  }
  const socket = new LastingSocket({
    path: () => {
      const { cols, rows } = screen.size()
      const address = `/api/v1/instances/${encodeURIComponent(instance)}/terminals/${encodeURIComponent(terminal)}`
      return `${address}?cols=${cols}&rows=${rows}&ack=1`
    },
    opened: () => {
      trouble = undefined
      connection += 1
      unsaid = 0
      screen.clear()
      become({ at: 'open' })
    },
    bytes: show,
    text: (text) => {
      const message = streamMessage(text)
      if (message === null) return
      if ('exit' in message) {
        over = true
        become({ at: 'ended', exit: message.exit })
      } else if ('error' in message) {
        trouble = new ApiError(0, message.error)
        over = !PASSING.includes(message.error.code)
        if (over) become({ at: 'refused', error: trouble })
      } else never(message)
    },
    lost: () => become({ at: 'lost', error: trouble }),
    isOver: () => over,
  })
  return {
    send: (bytes) => socket.send(bytes),
    resize: (size) => socket.send(JSON.stringify({ resize: size })),
    close: () => socket.close(),
  }
}

/** The terminal that one gets without asking for another: the same in every tab and after every reload. */
export const MAIN_TERMINAL = 'main'

/** The shortest name that no terminal has. */
export function newTerminalName(taken: readonly string[]): string {
  let number = 2
  while (taken.includes(`t${number}`)) number += 1
  return `t${number}`
}

export function isTerminalName(text: unknown): text is string {
  return typeof text === 'string' && /^[a-z0-9-]{1,32}$/.test(text)
}

/** Others may open and close terminals too, and nothing tells of it. */
const LIST_EVERY = 10_000

/** The terminals of an instance, by its id; oldest first. */
export function terminalsQuery(id: string) {
  return queryOptions({
    queryKey: ['terminals', id],
    queryFn: async ({ signal }): Promise<Terminal[]> =>
      dataOf(await api.GET('/api/v1/instances/{name}/terminals', { params: { path: { name: id } }, signal }))
        .items,
    refetchInterval: LIST_EVERY,
  })
}

/** Ends a terminal's shell, as closing a window does. */
export async function closeTerminal(id: string, terminal: string): Promise<void> {
  await api.DELETE('/api/v1/instances/{name}/terminals/{terminal}', {
    params: { path: { name: id, terminal } },
  })
}
