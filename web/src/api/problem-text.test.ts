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
  return problemText(new ApiError(400, problem), i18next.getFixedT(language, ['errors', 'instances']))
}

test('values are translated too', () => {
  const problem: ApiProblem = {
    code: 'too_large',
    message: 'no node has that much',
    params: { field: 'memory_bytes', wanted: String(2 ** 40), largest: String(2 ** 36) },
    request_id: 'req_1',
  }
  expect(read(problem)).toMatchObject({
    what: '“Memory” is more than any node has',
    why: 'Asked for 1 TiB; the most is 64 GiB.',
    requestId: 'req_1',
  })
  expect(read(problem, 'zh-CN').what).toContain(zh.errors.field.memory_bytes)
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
  const text = problemText(new TypeError('x is undefined'), i18next.getFixedT('en', ['errors', 'instances']))
  expect(text.what).toBe(en.errors.code.unreadable_answer.what)
  expect(text.details).toBe('x is undefined')
})
