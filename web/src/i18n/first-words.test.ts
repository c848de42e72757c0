// What is drawn before any part is fetched must find its words in the first bundle: a key on the screen is no word.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import ts from 'typescript'
import { expect, test } from 'vitest'

import { first } from './en/first'

const SOURCE = join(import.meta.dirname, '..')

function fileOf(from: string, to: string): string | undefined {
  const path = join(dirname(from), to)
  return [`${path}.tsx`, `${path}.ts`, join(path, 'index.tsx')].find((file) => existsSync(file))
}

function isTypeOnly(node: ts.ImportDeclaration): boolean {
  const clause = node.importClause
  if (!clause) return false
  if (clause.isTypeOnly) return true
  const named = clause.namedBindings
  return (
    !clause.name &&
    named !== undefined &&
    ts.isNamedImports(named) &&
    named.elements.every((element) => element.isTypeOnly)
  )
}

/** The files that come with these, by imports that are not `import()`. */
function withImports(starts: string[]): Set<string> {
  const found = new Set<string>()
  const visit = (file: string) => {
    if (found.has(file)) return
    found.add(file)
    for (const node of ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest)
      .statements) {
      const from =
        (ts.isImportDeclaration(node) && !isTypeOnly(node)) ||
        (ts.isExportDeclaration(node) && !node.isTypeOnly)
          ? node.moduleSpecifier
          : undefined
      const next =
        from && ts.isStringLiteral(from) && from.text.startsWith('.') ? fileOf(file, from.text) : undefined
      if (next) visit(next)
    }
  }
  for (const start of starts) visit(join(SOURCE, start))
  return found
}

/** The bundles that a file takes words from: by name, and as `bundle:key`. */
function bundles(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  const asked = [...text.matchAll(/(?:useTranslation|getFixedT)\(([^)]*)\)/g)].flatMap(([, names = '']) =>
    [...names.matchAll(/'([a-z]+)'/g)].map(([, name = '']) => name),
  )
  const named = [...text.matchAll(/\bt\([`']([a-z]+):/g)].map(([, name = '']) => name)
  return [...asked, ...named]
}

test('what is drawn first has its words with it', () => {
  const files = withImports([
    'main.tsx',
    'pages/login.tsx',
    'pages/enter.tsx',
    'app/password-dialog.tsx',
    'app/session-ended-dialog.tsx',
  ])
  expect(files.size).toBeGreaterThan(60)
  const missing = [...files].flatMap((file) =>
    bundles(file)
      .filter((name) => !(name in first))
      .map((name) => `${file.slice(SOURCE.length + 1)}: ${name}`),
  )
  expect(missing).toEqual([])
})
