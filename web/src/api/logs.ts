// What an instance has written, and what it goes on to write.

import { LINE_LENGTH_LIMIT, LINE_LIMIT, LogLines, PART_LINES, plainLine } from '../util/log-lines'
import { ApiError, api } from './client'
import { LastingSocket, streamMessage } from './socket'

export type LogState = 'connecting' | 'following' | 'lost' | 'ended'

/** Whose output: an instance's, or that of one task of a job, as `role/index`. */
export type LogSource = { instance: string } | { job: string; task: string; attempt: number }

export async function readLogs(source: LogSource, signal: AbortSignal, tail = LINE_LIMIT): Promise<LogLines> {
  const options = { parseAs: 'text', signal } as const
  const { data } =
    'instance' in source
      ? await api.GET('/api/v1/instances/{name}/logs', {
          params: { path: { name: source.instance }, query: { tail } },
          ...options,
        })
      : await api.GET('/api/v1/jobs/{name}/logs', {
          params: {
            path: { name: source.job },
            query: { tail, task: source.task, attempt: source.attempt },
          },
          ...options,
        })
  const lines = new LogLines()
  lines.push(data ?? '')
  return lines
}

/** More lines than a log has: asks for the last ones, by their numbers. */
export const LAST_LINE = 1_000_000_000_000

export interface LogPart {
  text: string
  /** The number of its first line. */
  first: number
  /** The log goes on after it, as far as can be told. */
  more: boolean
}

/** Some lines of a log from a line on; the last ones where there are not as many. */
export async function readLogPart(source: LogSource, from: number, signal: AbortSignal): Promise<LogPart> {
  const part = { from: Math.max(from, 1), lines: PART_LINES }
  const options = { parseAs: 'text', signal } as const
  const { data, response } =
    'instance' in source
      ? await api.GET('/api/v1/instances/{name}/logs', {
          params: { path: { name: source.instance }, query: part },
          ...options,
        })
      : await api.GET('/api/v1/jobs/{name}/logs', {
          params: {
            path: { name: source.job },
            query: { ...part, task: source.task, attempt: source.attempt },
          },
          ...options,
        })
  const first = Number(response.headers.get('berth-first-line')) || 1
  const lines = (data ?? '').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return {
    text: lines.map((line) => plainLine(line).slice(0, LINE_LENGTH_LIMIT)).join('\n'),
    first,
    more: first === part.from && lines.length >= PART_LINES,
  }
}

/** Where the raw text of a whole log is, for a download. */
export function wholeLogAddress(source: LogSource): string {
  return logAddress(source, '', wholeLog(source))
}

/** Where those lines of the whole log are that hold a text. */
export function foundInLogAddress(source: LogSource, text: string): string {
  return logAddress(source, '', { ...wholeLog(source), grep: text })
}

/** Of an instance the last thousand lines are told, unless one asks for all since some time. */
function wholeLog(source: LogSource): Record<string, string> {
  return 'instance' in source ? { since: '1970-01-01T00:00:00Z' } : {}
}

function logAddress(source: LogSource, stream: '' | '/follow', part: Record<string, string>): string {
  const query = new URLSearchParams(part)
  const [kind, name] = 'instance' in source ? ['instances', source.instance] : ['jobs', source.job]
  if ('job' in source) {
    query.set('task', source.task)
    query.set('attempt', String(source.attempt))
  }
  return `/api/v1/${kind}/${encodeURIComponent(name)}/logs${stream}?${query}`
}

/**
 * Follows the log: its tail first, then every new line. Each connection begins with the tail again, so `changed` always
 * gets the whole of what is to be shown, never a piece with a gap before it. Returns the function that stops.
 */
export function followLogs(
  source: LogSource,
  changed: (lines: LogLines) => void,
  become: (state: LogState, error?: ApiError) => void,
): () => void {
  let lines = new LogLines()
  let over = false
  // Standard output and standard error are cut anywhere, also within a Chinese character: each has its own decoder.
  let decoders = new Map<number, TextDecoder>()
  const socket = new LastingSocket({
    path: () => logAddress(source, '/follow', { tail: String(LINE_LIMIT) }),
    opened: () => {
      lines = new LogLines()
      decoders = new Map()
      become('following')
    },
    bytes: (bytes) => {
      const stream = bytes[0] ?? 0
      const decoder = decoders.get(stream) ?? new TextDecoder()
      decoders.set(stream, decoder)
      lines.push(decoder.decode(bytes.subarray(1), { stream: true }))
      changed(lines)
    },
    text: (text) => {
      const message = streamMessage(text)
      if (message && 'error' in message) {
        over = true
        become('ended', new ApiError(0, message.error))
      }
    },
    // A proper close is the end of the container, or of a gateway that restarts: only the next attempt will tell.
    lost: (closed) => become(closed?.code === 1000 ? 'ended' : 'lost'),
    isOver: () => over,
  })
  return () => socket.close()
}
