// Writes down whose work the console is made with, and on what terms: licences ask for it to come with the copy.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'

const web = new URL('../', import.meta.url)
const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', web), 'utf8'))

/** Where its source code is kept, as it says itself. */
function sourceOf(folder) {
  const { repository, homepage } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'))
  return repository?.url ?? repository ?? homepage ?? 'in the package itself'
}

/** The files of a folder by their names. */
function named(place, name) {
  return readdirSync(place)
    .filter((file) => name.test(file))
    .map((file) => new URL(file, place))
}

/** Where the texts of a package's licence are; some keep those that theirs speaks of in a folder. */
function texts(folder) {
  const docs = new URL('docs/', folder)
  const found = [
    ...named(folder, /^(licen[cs]e|copying|notice|authors)/i),
    ...(existsSync(docs) ? named(docs, /^licen[cs]e/i) : []),
  ]
  return found.map((file) => readFileSync(file, 'utf8').trim())
}

const shipped = Object.entries(packages).filter(
  ([path, { dev, devOptional, optional }]) => path && !dev && !devOptional && !optional,
)
const parts = shipped.map(([path, { version, license }]) => {
  const name = path.split('node_modules/').at(-1)
  if (!license) throw new Error(`${name} does not say on what terms it may be used`)
  const source = sourceOf(new URL(`${path}/`, web))
  return [`${name} ${version}, ${license}\nSource code: ${source}`, ...texts(new URL(`${path}/`, web))].join(
    '\n\n',
  )
})
if (!parts.some((part) => part.includes('Mozilla Public License Version 2.0'))) {
  throw new Error('the text of the licence of noVNC is missing')
}

const head =
  'The console of Berth holds the following works of others, made smaller and otherwise unchanged.\n'
writeFileSync(new URL('dist/notices.txt', web), `${[head, ...parts].join(`\n${'-'.repeat(72)}\n\n`)}\n`)
