// Every page in both languages, both themes, on a desk and on a phone: it loads without an error, does not scroll
// sideways, and axe finds nothing.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { before, describe, test } from 'node:test'

import { ask, inBrowser, signIn, site } from './browser.mjs'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** The instance and the job that whoever runs this has made. */
const INSTANCE = '/instances/look'
const JOB = '/jobs/look'

/** Addresses; with a name and what the browser remembers, where it is not the address alone that says what is shown. */
const PAGES = [
  '/login',
  '/',
  '/instances',
  // Nothing that the filter lets through.
  '/instances?find=nothing+such',
  '/instances/new',
  INSTANCE,
  ...['lab', 'ide', 'terminal', 'tensorboard', 'desktop', 'ssh', 'ports', 'logs', 'metrics', 'events', 'spec'].map(
    (tab) => `${INSTANCE}/${tab}`,
  ),
  '/jobs',
  '/jobs/new',
  '/jobs/new?from=look',
  ['/jobs/new', 'as text', { 'berth.job-mode': 'text' }],
  ['/jobs/new', 'professional', { 'berth.professional': true }],
  JOB,
  ...['logs', 'metrics', 'events', 'file'].map((tab) => `${JOB}/${tab}`),
  '/queue',
  '/cluster',
  '/images',
  '/images?group=platform',
  '/images?group=others',
  '/setup',
  '/help',
  ...['profile', 'appearance', 'ssh-keys', 'tokens', 'secrets', 'security', 'activity'].map(
    (section) => `/settings/${section}`,
  ),
  ...[
    'users',
    'groups',
    'nodes',
    'instances',
    'jobs',
    'images',
    'usage',
    'announcements',
    'audit',
    'health',
    'settings',
  ].map((section) => `/admin/${section}`),
  '/nowhere',
]

const SIZES = {
  desk: { width: 1280, height: 800 },
  phone: { width: 375, height: 740 },
}
/** The smallest and the largest that there are; once is enough. */
const EXTREMES = {
  narrow: { width: 360, height: 640 },
  wall: { width: 1920, height: 1080 },
}

/** Mantine keeps what it remembers as JSON. */
const remember = (page, values) =>
  page.evaluate((all) => {
    for (const [key, value] of Object.entries(all)) localStorage.setItem(key, JSON.stringify(value))
  }, values)

const forget = (page, values) =>
  page.evaluate((keys) => keys.forEach((key) => localStorage.removeItem(key)), Object.keys(values))

/** What is wrong with a page. */
async function look(page, path) {
  await page.goto(`${site.url}${path}`)
  await page.locator('h1').waitFor()
  await page.locator('.after-a-moment').first().waitFor({ state: 'detached' })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  await page.evaluate(AXE)
  const found = await page.evaluate(async (values) => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: { type: 'tag', values },
    })
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
    )
  }, RULES)
  if (wide > 0) found.push(`${wide} pixels too wide`)
  return found.map((problem) => `${path}: ${problem}`)
}

// Two browsers at a time: all of them one after the other take as long as everything else together.
describe('every page', { concurrency: 2 }, () => {
  before(async () => {
    await inBrowser('pages-before', { locale: 'en-GB' }, async (page) => {
      await signIn(page)
      await ask(page, 'POST', '/announcements', { level: 'warning', text: { english: 'Power cut', chinese: '停电' } })
    })
  })

  for (const language of ['zh-CN', 'en']) {
    for (const scheme of ['light', 'dark']) {
      test(`${language}, ${scheme}`, async () => {
        await inBrowser(
          `pages-${language}-${scheme}`,
          { locale: 'en-GB', gatewayGoes: false },
          async (page, shoot) => {
            await signIn(page)
            await page.evaluate(
              ([language, scheme]) => {
                localStorage.setItem('berth.language', language)
                localStorage.setItem('berth.color-scheme', scheme)
              },
              [language, scheme],
            )
            const problems = []
            const sizes = { ...SIZES, ...(language === 'en' && scheme === 'light' && EXTREMES) }
            for (const [size, viewport] of Object.entries(sizes)) {
              await page.setViewportSize(viewport)
              for (const one of PAGES) {
                const [path, name = '', remembered = {}] = [one].flat()
                await remember(page, remembered)
                problems.push(...(await look(page, path)).map((problem) => `${size} ${name} ${problem}`))
                await shoot(`${size}${path.replaceAll(/[/?=+]/g, '-')}${name.replaceAll(' ', '-')}`)
                await forget(page, remembered)
              }
            }
            assert.deepEqual(problems, [])
          },
        )
      })
    }
  }
})
