// Fails the build when the console grows beyond what a slow link can bear. Sizes are brotli, as the browser gets them.
import { readFileSync, readdirSync } from 'node:fs'
import { brotliCompressSync } from 'node:zlib'

const FIRST_LOAD_JS = 260_000
const FIRST_LOAD_CSS = 35_000
const LAZY_CHUNK = 160_000

const dist = new URL('../dist/', import.meta.url)
const compressed = (file) => brotliCompressSync(readFileSync(new URL(file, dist))).length
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`

const index = readFileSync(new URL('index.html', dist), 'utf8')
const first = [...index.matchAll(/(?:src|href)="\/([^"]+\.(?:js|css))"/g)].map((match) => match[1])
const total = (extension) =>
  first.filter((file) => file.endsWith(extension)).reduce((sum, file) => sum + compressed(file), 0)

const lines = [
  ['first load, JavaScript', total('.js'), FIRST_LOAD_JS],
  ['first load, CSS', total('.css'), FIRST_LOAD_CSS],
]
for (const file of readdirSync(new URL('assets/', dist))) {
  const path = `assets/${file}`
  if (/\.(js|css)$/.test(file) && !first.includes(path)) lines.push([path, compressed(path), LAZY_CHUNK])
}

for (const [what, size, limit] of lines) {
  console.log(`${size > limit ? 'OVER' : '  ok'}  ${kB(size).padStart(9)} of ${kB(limit)}  ${what}`)
}
if (lines.some(([, size, limit]) => size > limit)) {
  console.error('the console is over its size budget: load the new part lazily, or drop something')
  process.exit(1)
}
