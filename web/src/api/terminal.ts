// A persistent terminal of an instance. The shell lives there; this is only a window on it, and may be closed and
// opened again: the instance then sends what the screen showed.

import { never } from '../util/never'
import { ApiError } from './client'
import { LastingSocket, streamMessage } from './socket'
import type { ProblemCode, ProcessExit } from './types'

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
  write: (bytes: Uint8Array<ArrayBuffer>) => void
}

/** The side that types. */
export interface Wire {
  send: (bytes: Uint8Array<ArrayBuffer>) => void
  resize: (size: { cols: number; rows: number }) => void
  close: () => void
}

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
  const socket = new LastingSocket({
    path: () => {
      const { cols, rows } = screen.size()
      const address = `/api/v1/instances/${encodeURIComponent(instance)}/terminals/${encodeURIComponent(terminal)}`
      return `${address}?cols=${cols}&rows=${rows}`
    },
    opened: () => {
      trouble = undefined
      screen.clear()
      become({ at: 'open' })
    },
    bytes: screen.write,
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

/** A name for another terminal. Not `randomUUID`: that exists only on HTTPS and localhost. */
export function newTerminalName(): string {
  const random = crypto.getRandomValues(new Uint32Array(2))
  return `t-${Array.from(random, (number) => number.toString(36)).join('')}`
}

/** The terminal that one gets without asking for another: the same in every tab and after every reload. */
export const MAIN_TERMINAL = 'main'

export function isTerminalName(text: unknown): text is string {
  return typeof text === 'string' && /^[a-z0-9-]{1,32}$/.test(text)
}
