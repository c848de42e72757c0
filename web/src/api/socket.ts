// A WebSocket that comes back by itself. Who uses it says what the messages mean and when it is over.

import { Backoff } from '../util/backoff'
import { isProblem, socketAddress } from './client'
import { onDoubt } from './link'
import type { ProcessExit, StreamMessage } from './types'

/** What the user of a socket does with it. */
export interface SocketUser {
  /** The address of the next attempt. */
  path: () => string
  /** Connected, for the first time or again: what the server sends now begins anew. */
  opened: () => void
  bytes: (bytes: Uint8Array<ArrayBuffer>) => void
  text: (text: string) => void
  /** Not connected, for now; nobody has closed a link that merely died. */
  lost: (closed?: CloseEvent) => void
  /** Whether a message has said that this is the end; else a close is an accident. */
  isOver: () => boolean
}

export class LastingSocket {
  private socket: WebSocket | null = null
  private retry: ReturnType<typeof setTimeout> | undefined
  private heardAt = 0
  private readonly backoff = new Backoff()
  private readonly undoubt: () => void

  constructor(private readonly user: SocketUser) {
    this.undoubt = onDoubt((since) => {
      if (this.heardAt > since || this.user.isOver()) return
      if (this.socket !== null) this.user.lost()
      this.connect()
    })
    this.connect()
  }

  /** Sends if connected; what is typed while the line is down is not kept, as it would arrive as a surprise. */
  send(message: string | Uint8Array<ArrayBuffer>) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(message)
  }

  close() {
    this.undoubt()
    this.leave()
  }

  private connect() {
    this.leave()
    const socket = new WebSocket(socketAddress(this.user.path()))
    socket.binaryType = 'arraybuffer'
    this.socket = socket
    // One that was left has nothing more to say.
    const isCurrent = () => this.socket === socket
    socket.addEventListener('open', () => {
      if (isCurrent()) this.user.opened()
    })
    socket.addEventListener('message', (message: MessageEvent<unknown>) => {
      if (!isCurrent()) return
      this.heardAt = Date.now()
      if (message.data instanceof ArrayBuffer) {
        // Only bytes prove that somebody is there: a server that accepts and then fails must be asked ever less often.
        this.backoff.reset()
        this.user.bytes(new Uint8Array(message.data))
      } else if (typeof message.data === 'string') {
        this.user.text(message.data)
      }
    })
    socket.addEventListener('close', (closed) => {
      if (!isCurrent()) return
      this.leave()
      if (this.user.isOver()) return
      this.user.lost(closed)
      this.retry = setTimeout(() => this.connect(), this.backoff.next())
    })
  }

  /** Not connected, and not about to be. A dead link does not answer a close either: nobody waits for it. */
  private leave() {
    clearTimeout(this.retry)
    this.socket?.close()
    this.socket = null
  }
}

function isExit(value: unknown): value is ProcessExit {
  return (
    typeof value === 'object' &&
    value !== null &&
    (('code' in value && typeof value.code === 'number') ||
      ('signal' in value && typeof value.signal === 'string'))
  )
}

/** Reads the last message of a stream; null if it is something that we do not know. */
export function streamMessage(text: string): StreamMessage | null {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) return null
  if ('exit' in value && isExit(value.exit)) return { exit: value.exit }
  if ('error' in value && isProblem(value.error)) return { error: value.error }
  return null
}
