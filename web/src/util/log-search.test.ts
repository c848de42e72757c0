import { describe, expect, test } from 'vitest'

import { cutAtMatches, linesOf, MATCH_LIMIT } from './log-search'

describe('finding in a log', () => {
  const check = (text: string, search: string, expected: string[]) =>
    test(`${search} in ${text}`, () => {
      const { pieces, count } = cutAtMatches(text, search)
      expect(pieces.map((piece) => piece.text).join('')).toBe(text)
      const found = pieces.filter((piece) => piece.match !== undefined)
      expect(found.map((piece) => piece.text)).toEqual(expected)
      expect(count).toBe(expected.length)
    })
  check('loss 0.5\nLoss 0.25', 'loss', ['loss', 'Loss'])
  check('loss 0.5\nloss 0.25', String.raw`\d+\.\d+`, ['0.5', '0.25'])
  check('a (b', '(b', ['(b'])
  check('abc', 'x*', [])
  check('abc', '', [])
  check('错误：内存不足', '内存', ['内存'])
})

test('a log full of matches stays quick to draw', () => {
  expect(cutAtMatches('a'.repeat(MATCH_LIMIT * 2), 'a').count).toBe(MATCH_LIMIT)
})

test('matches stay in their lines', () => {
  const lines = linesOf(cutAtMatches('one\n\nloss 1\nend', 'loss').pieces)
  expect(lines).toEqual([
    [{ text: 'one' }],
    [],
    [{ text: 'loss', match: 0 }, { text: ' 1' }],
    [{ text: 'end' }],
  ])
})
