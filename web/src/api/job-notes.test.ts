import { readFileSync } from 'node:fs'

import i18next from 'i18next'
import { beforeAll, describe, expect, test } from 'vitest'

import { resources as english } from '../i18n/en'
import { resources as chinese } from '../i18n/zh-CN'
import { fieldOf, noteText } from './job-notes'

const note = (code: string, params: Record<string, string> = {}) => ({
  level: 'error',
  code,
  pointer: '/taskRoles/0/memoryMB',
  message: 'the gateway’s own words',
  params,
})

beforeAll(() =>
  i18next.init({
    lng: 'zh-CN',
    resources: { en: english, 'zh-CN': chinese },
    interpolation: { escapeValue: false },
  }),
)

test('every code of the reader has its sentence', () => {
  const source = readFileSync(new URL('../../../gateway/jobfile/src/note.rs', import.meta.url), 'utf8')
  const [, list = ''] = /pub const ALL[^[]*\[Self; \d+\] = \[([^\]]*)\]/.exec(source) ?? []
  const codes = [...list.matchAll(/Self::(\w+)/g)].map(([, name = '']) =>
    name.replaceAll(/(?<!^)([A-Z])/g, '_$1').toLowerCase(),
  )
  expect(codes.length).toBeGreaterThan(30)
  expect(Object.keys(english.notes.what)).toEqual(expect.arrayContaining(codes))
})

describe('in Chinese', () => {
  const t = i18next.getFixedT('zh-CN', 'notes')
  const says = (code: string, params: Record<string, string>, expected: object) =>
    test(code, () => expect(noteText(note(code, params), t)).toEqual(expected))
  says(
    'out_of_range',
    { value: '50', least: '64', example: '"memoryMB": 2048' },
    {
      what: '`taskRoles[0].memoryMB` 为 `50`，不得小于 64。',
      hint: '请写成 `"memoryMB": 2048`。',
    },
  )
  says('unknown_key', {}, { what: '未知的 `taskRoles[0].memoryMB`，已保留但不起作用。', hint: undefined })
  says('newer_than_this', {}, { what: 'the gateway’s own words', hint: undefined })
})

test('fields are named as people write them', () => {
  expect(fieldOf('/env/a~1b')).toBe('env.a/b')
  expect(fieldOf('')).toBe('')
})
