// Puts a brotli and a gzip copy beside every file of the console that is worth it. They are made once, as small as can
// be, and the gateway only picks one.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

/** Smaller ones fit into the first packets anyway. */
const SMALLEST = 1024

const dist = new URL('../dist/', import.meta.url)
for (const path of readdirSync(dist, { recursive: true })) {
  if (!/\.(css|html|js|json|svg|txt|webmanifest)$/.test(path)) continue
  const file = new URL(path, dist)
  const bytes = readFileSync(file)
  if (bytes.length < SMALLEST) continue
  const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }
  writeFileSync(`${file.pathname}.br`, brotliCompressSync(bytes, brotli))
  writeFileSync(`${file.pathname}.gz`, gzipSync(bytes, { level: 9 }))
}
