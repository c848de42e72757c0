// No visible text outside the translations. A word that stands in a component is a word that half of the users cannot
// read.

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

import ts from 'typescript'
import { expect, test } from 'vitest'

const SOURCE = join(import.meta.dirname, '..')

/** Attributes whose text people see or hear. */
const VISIBLE = new Set([
  'label',
  'title',
  'placeholder',
  'description',
  'alt',
  'aria-label',
  'legend',
  'message',
  'text',
])

/** What is the same in every language: a command is not prose. */
const SAME_EVERYWHERE = new Set(['python train.py --epochs 10', 'http, tensorboard'])

const CHINESE = /[\u3400-\u9fff\uff00-\uffef]/
const LETTERS = /\p{L}{2,}/u

function strayText(file: ts.SourceFile): string[] {
  const stray: string[] = []
  const report = (node: ts.Node, text: string) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file))
    stray.push(`${relative(SOURCE, file.fileName)}:${line + 1} ${text.trim()}`)
  }
  const visit = (node: ts.Node) => {
    if (ts.isJsxText(node) && LETTERS.test(node.text)) report(node, node.text)
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (CHINESE.test(node.text)) report(node, node.text)
    }
    if (ts.isJsxAttribute(node) && VISIBLE.has(node.name.getText(file)) && node.initializer) {
      const { initializer } = node
      if (
        ts.isStringLiteral(initializer) &&
        LETTERS.test(initializer.text) &&
        !SAME_EVERYWHERE.has(initializer.text)
      ) {
        report(node, initializer.text)
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return stray
}

function parse(name: string, text: string) {
  return ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)
}

test('no visible text stands outside the translations', () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !/\.(test|d)\.tsx?$/.test(path) && !path.startsWith('i18n/'))
    .map((path) => join(SOURCE, path))
  expect(files.length).toBeGreaterThan(30)
  expect(files.flatMap((path) => strayText(parse(path, readFileSync(path, 'utf8'))))).toEqual([])
})

test('stray text is found', () => {
  const source = 'const a = <p title="Some words">Hello there</p>; const b = "你好"; const c = `${a}世界`'
  expect(strayText(parse('probe.tsx', source))).toHaveLength(4)
})
