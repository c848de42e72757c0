import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

import i18next from 'i18next'
import { beforeAll, expect, test } from 'vitest'

import { resources as en } from '../i18n/en'
import { resources as zh } from '../i18n/zh-CN'
import { ApiError, type ApiProblem } from './client'
import { problemText } from './problem-text'

beforeAll(() =>
  i18next.init({ lng: 'en', resources: { en, 'zh-CN': zh }, interpolation: { escapeValue: false } }),
)

function read(problem: ApiProblem, language = 'en') {
  return problemText(new ApiError(400, problem), i18next.getFixedT(language, ['errors', 'instances', 'jobs']))
}

/** What gateways answer, written down by a test of the gateway. */
const written = readFileSync(resolve(import.meta.dirname, '../../../gateway/api/problems.json'), 'utf8')
const problems: { bad_input: Record<string, ApiProblem>; all: ApiProblem[] } = JSON.parse(written)

function bothLanguages(problem: ApiProblem): string {
  return ['en', 'zh-CN']
    .map((language) => {
      const { what, why, hint, details } = read(problem, language)
      return [what, why, hint, details && `(${details})`].filter(Boolean).join('\n')
    })
    .join('\n')
}

test('bad input in both languages', () => {
  const said = Object.entries(problems.bad_input).map(
    ([mistake, problem]) => `${mistake}\n${bothLanguages(problem)}`,
  )
  expect(said.join('\n\n')).toMatchSnapshot()
})

test('every error in both languages', () => {
  expect(problems.all.map(bothLanguages).join('\n\n')).toMatchSnapshot()
})

test('no mistake reads like another', () => {
  for (const language of ['en', 'zh-CN']) {
    const said = Object.values(problems.bad_input).map((problem) => {
      const { what, why } = read(problem, language)
      return `${what} ${why} ${problem.code}`
    })
    // An empty name and one that holds a space break the same rule.
    expect(new Set(said).size).toBe(said.length - 1)
  }
})

test('a sentence whose values are missing gives way to the words of the gateway', () => {
  expect(read({ code: 'not_found', message: 'no such thing' }).what).toBe('no such thing')
})

test('an unknown code is shown in the words of the gateway', () => {
  expect(read({ code: 'unknown', message: 'the moon is full', hint: 'wait' })).toMatchObject({
    what: 'the moon is full',
    hint: 'wait',
  })
})

test('an error that is not of the API is still a sentence', () => {
  const text = problemText(
    new TypeError('x is undefined'),
    i18next.getFixedT('en', ['errors', 'instances', 'jobs']),
  )
  expect(text.what).toBe(en.errors.code.unreadable_answer.what)
  expect(text.details).toBe('x is undefined')
})
