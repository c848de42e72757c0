// Fails the build when the console grows beyond what a slow link can bear. Sizes are brotli, as the browser gets them.
//
// A page is counted with all that it draws with: its own chunk, what that imports, the words of the language. What is
// fetched beside it later (an editor, a terminal) is counted together with it, since both are there at once.
import { readFileSync, rmSync } from 'node:fs'
import { brotliCompressSync } from 'node:zlib'

const FIRST_LOAD_JS = 260_000
const FIRST_LOAD_CSS = 35_000
const LAZY_ROUTE = 160_000

const ENTRY = 'index.html'
const LANGUAGES = ['en', 'zh-CN']
/** What somebody may see first, beside Home, which is in the entry. */
const FIRST_PAGES = ['src/pages/login.tsx']

const dist = new URL('../dist/', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'))
// It is for this script alone, not for the browser.
rmSync(new URL('.vite', dist), { recursive: true })

const sizes = new Map()
function compressed(file) {
  if (!sizes.has(file)) sizes.set(file, brotliCompressSync(readFileSync(new URL(file, dist))).length)
  return sizes.get(file)
}

/** The chunks that must be here before any of these runs. */
function needed(...keys) {
  const found = new Set()
  const visit = (key) => {
    if (found.has(key)) return
    if (!manifest[key]) throw new Error(`${key} is no chunk of its own`)
    found.add(key)
    manifest[key].imports?.forEach(visit)
  }
  keys.forEach(visit)
  return found
}

const filesOf = (chunks) =>
  new Set([...chunks].flatMap((key) => [manifest[key].file, ...(manifest[key].css ?? [])]))
const later = (chunks) => new Set([...chunks].flatMap((key) => manifest[key].dynamicImports ?? []))
const words = (language, part) => `src/i18n/${language}/${part}.ts`
const isWords = (key) => key.startsWith('src/i18n/')
const total = (files, extension = '') =>
  [...files].filter((file) => file.endsWith(extension)).reduce((sum, file) => sum + compressed(file), 0)
/** Loaded by a tag of the page itself, so not in the manifest. */
const outside = ['before-paint.js']

const lines = []
for (const language of LANGUAGES) {
  for (const page of [undefined, ...FIRST_PAGES]) {
    const files = filesOf(needed(ENTRY, words(language, 'first'), ...(page ? [page] : [])))
    const what = `first load in ${language}${page ? `, ${page}` : ''}`
    lines.push([`${what}: JavaScript`, total([...files, ...outside], '.js'), FIRST_LOAD_JS])
    lines.push([`${what}: CSS`, total(files, '.css'), FIRST_LOAD_CSS])
  }
}

const first = needed(ENTRY)
const inFirst = filesOf(first)
const restOfWords = Math.max(
  ...LANGUAGES.map((language) => compressed(manifest[words(language, 'rest')].file)),
)
for (const page of later(first)) {
  if (isWords(page)) continue
  const alone = needed(page)
  const parts = [...later(alone)].filter((part) => !isWords(part) && !later(first).has(part))
  for (const part of [undefined, ...parts]) {
    const files = [...filesOf(part ? needed(page, part) : alone)].filter((file) => !inFirst.has(file))
    lines.push([`${page}${part ? ` with ${part}` : ''}`, total(files) + restOfWords, LAZY_ROUTE])
  }
}

const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`
for (const [what, size, limit] of lines) {
  console.log(`${size > limit ? 'OVER' : '  ok'}  ${kB(size).padStart(9)} of ${kB(limit)}  ${what}`)
}
if (lines.some(([, size, limit]) => size > limit)) {
  console.error('the console is over its size budget: load the new part lazily, or drop something')
  process.exit(1)
}
