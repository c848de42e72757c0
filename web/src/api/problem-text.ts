// The one translator of errors: by `code` and `params`, with the gateway's own words where a code is unknown here.

import type { TFunction } from 'i18next'

import { formatBytes } from '../util/format'
import { ApiError, type ApiProblem } from './client'

/** What a person reads: what happened, why, and what to do next. */
export interface ProblemText {
  what: string
  why?: string
  hint?: string
  /** The gateway's own sentence, when it may say more than the translation. */
  details?: string
  requestId?: string
}

type Translate = TFunction<['errors', 'instances', 'jobs']>

export function problemOf(error: unknown): ApiProblem {
  if (error instanceof ApiError) return error.problem
  return { code: 'unreadable_answer', message: error instanceof Error ? error.message : String(error) }
}

/** Kinds of work, `instance,job`, in the reader's language. */
export function kindsOfWork(
  kinds: string,
  t: (key: string, options: { defaultValue: string }) => string,
): string {
  const each = kinds.split(',').map((kind) => t(`errors:work.${kind}`, { defaultValue: kind }))
  return each.join(t('errors:work.and', { defaultValue: ', ' }))
}

function words(problem: ApiProblem, t: Translate): Record<string, string> {
  const { field, kind, kinds, reason, state, action, wanted, largest, ...rest } = problem.params ?? {}
  const amount = (text: string | undefined) =>
    text !== undefined && field?.endsWith('_bytes') && /^\d+$/.test(text) ? formatBytes(Number(text)) : text
  // Jobs have words of their own for how they are.
  const whose = kind === 'job' ? 'jobs' : 'instances'
  const values: Record<string, string | undefined> = {
    ...rest,
    kind: kind && t(`errors:kind.${kind}`, { defaultValue: kind }),
    // What has no word, such as a registry's answer, is said as it was said.
    reason: (reason && t(`errors:reason.${reason}`, { defaultValue: '' })) || rest.why,
    rule: kind && (t(`errors:rule.${kind}`, { defaultValue: '' }) || undefined),
    field: field && t(`errors:field.${field}`, { defaultValue: field }),
    state: state && t(`${whose}:state.${state}`, { defaultValue: state }),
    action: action && t(`${whose}:action.${action}`, { defaultValue: action }),
    kinds: kinds && kindsOfWork(kinds, (key, options) => t(key, options)),
    wanted: amount(wanted),
    largest: amount(largest),
  }
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

/** Codes whose translation is general, so that the gateway's own sentence says more. */
const GENERAL: readonly ApiProblem['code'][] = [
  'bad_value',
  'bad_image',
  'image_not_found',
  'bad_body',
  'cluster_unreachable',
  'engine_unreachable',
  'agent_unreachable',
  'disk_full',
  'internal',
  'unreadable_answer',
]

/** Those that say more where there is such a value: an image is in use by instances, and has room in its group's. */
const VARIANTS: readonly (readonly [ApiProblem['code'], string])[] = [
  ['in_use', 'by'],
  ['image_quota', 'group'],
]

/** Whether the sentence asks for a value that the gateway did not send. */
function hasHole(sentence: string, values: Record<string, string>): boolean {
  return [...sentence.matchAll(/\{\{(\w+)\}\}/g)].some(([, name]) => name !== undefined && !(name in values))
}

export function problemText(error: unknown, t: Translate): ProblemText {
  const problem = problemOf(error)
  const values = words(problem, t)
  const variant = VARIANTS.find(([code, param]) => code === problem.code && param in values)
  const code = variant ? variant.join('_') : problem.code
  const line = (part: string) => {
    const key = `errors:code.${code}.${part}`
    const sentence = t(key, { defaultValue: '', skipInterpolation: true })
    return sentence === '' || hasHole(sentence, values) ? undefined : t(key, { ...values, defaultValue: '' })
  }
  const what = line('what')
  const why = line('why')
  return {
    what: what ?? problem.message,
    why,
    hint: line('hint_named') ?? line('hint') ?? problem.hint ?? undefined,
    details:
      what !== undefined && GENERAL.includes(problem.code) && (why === undefined || why !== values.reason)
        ? problem.message
        : undefined,
    requestId: problem.request_id || undefined,
  }
}
