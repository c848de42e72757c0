import { useThrottledCallback } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'

import { followLogs, type LogPart, type LogSource, type LogState, readLogPart, readLogs } from '../api/logs'
import { type LogLines, partAround } from '../util/log-lines'

interface Shown {
  text: string
  cut: boolean
}

/** The end of a log, and what comes after it. */
export function useLog(source: LogSource, writing: boolean) {
  const [shown, setShown] = useState<Shown>({ text: '', cut: false })
  const [state, setState] = useState<LogState>('connecting')
  const [error, setError] = useState<Error | null>(null)
  // A busy log has thousands of messages a second; the eye needs a few redraws.
  const show = useThrottledCallback(
    (lines: LogLines) => setShown({ text: lines.text(), cut: lines.cut }),
    150,
  )
  useEffect(() => {
    const become = (next: LogState, problem?: Error) => {
      setState(next)
      setError(problem ?? null)
    }
    if (writing) return followLogs(source, show, become)
    const reading = new AbortController()
    readLogs(source, reading.signal).then(
      (lines) => {
        show(lines)
        become('ended')
      },
      (problem: Error) => {
        if (!reading.signal.aborted) become('ended', problem)
      },
    )
    return () => reading.abort()
  }, [source, writing, show])
  return { shown, state, error }
}

export interface NumberedPart extends LogPart {
  last: number
}

/** The lines around one of them, of a log that is too long to be shown from its beginning. */
export function useLogPart(source: LogSource, line: number | undefined) {
  const from = partAround(line ?? 1)
  const { data, error } = useQuery({
    queryKey: ['log-part', source, from],
    queryFn: ({ signal }) => readLogPart(source, from, signal),
    enabled: line !== undefined,
    placeholderData: keepPreviousData,
  })
  const part: NumberedPart | undefined =
    line === undefined || data === undefined ? undefined : { ...data, last: lastOf(data) }
  return { part, error: line === undefined ? null : error }
}

export function lastOf(part: LogPart): number {
  return part.first - 1 + (part.text === '' ? 0 : part.text.split('\n').length)
}
