// The one fetch wrapper. Every answer is either data or an `ApiError`; nothing else leaves this module.

import createClient, { type Middleware } from 'openapi-fetch'

import type { paths } from './__generated__/schema'
import type { Problem } from './types'

/** Codes of errors that happen before an answer of the gateway exists. */
export type LocalCode = 'offline' | 'unreadable_answer' | 'file_too_large'

export interface ApiProblem extends Omit<Problem, 'code'> {
  code: Problem['code'] | LocalCode
}

/** An error as the gateway describes it, or as we describe what kept us from the gateway. */
export class ApiError extends Error {
  readonly status: number
  readonly problem: ApiProblem
  /** The answer as it came, where there was one. */
  readonly body: unknown

  constructor(status: number, problem: ApiProblem, body: unknown = null) {
    super(problem.message)
    this.name = 'ApiError'
    this.status = status
    this.problem = problem
    this.body = body
  }
}

export function isProblem(value: unknown): value is Problem {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    typeof value.code === 'string' &&
    'message' in value &&
    typeof value.message === 'string'
  )
}

/** Reads the error out of an answer that is not a success. */
export async function errorFrom(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null)
  if (isProblem(body)) return new ApiError(response.status, body)
  const message = `${response.status} ${response.statusText}`.trim()
  return new ApiError(response.status, { code: 'unreadable_answer', message }, body)
}

/** A request that got no answer: no network, or no gateway. */
export function offlineError(cause: unknown): ApiError {
  return new ApiError(0, { code: 'offline', message: cause instanceof Error ? cause.message : String(cause) })
}

const problemsAreThrown: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await errorFrom(response)
  },
  onError({ error }) {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === 'AbortError')) return
    return offlineError(error)
  },
}

export const api = createClient<paths>({ baseUrl: '' })
api.use(problemsAreThrown)

/** The body of a success. An empty one where a body was promised means that somebody else answered. */
export function dataOf<T>(answer: { data?: T; response: Response }): T {
  if (answer.data === undefined) {
    throw new ApiError(answer.response.status, { code: 'unreadable_answer', message: 'the answer is empty' })
  }
  return answer.data
}

/** As many as a gateway gives at once. */
const PAGE = 1000

/** A whole list, page after page. */
export async function allPages<T extends { id: string }>(
  page: (query: { limit: number; after?: string }) => Promise<{ items: T[] }>,
): Promise<T[]> {
  const found: T[] = []
  for (;;) {
    const after = found.at(-1)?.id
    const { items } = await page({ limit: PAGE, ...(after && { after }) })
    found.push(...items)
    if (items.length < PAGE) return found
  }
}

/** The address of a WebSocket on the console's own origin. */
export function socketAddress(path: string): string {
  const address = new URL(path, window.location.href)
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
  return address.href
}
