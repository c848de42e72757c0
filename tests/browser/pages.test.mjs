// Every page in both languages, both themes, on a desk and on a phone: it loads without an error, does not scroll
// sideways, and axe finds nothing. Of these, any two meet; with BERTH_ALL_PAGES all of them do, on the smallest and the
// largest screen too, and there is a picture of each.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'

import { mistakes, still } from './axe.mjs'
import { ask, fits, inBrowser, signIn, site } from './browser.mjs'

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

const ALL = Boolean(process.env.BERTH_ALL_PAGES)

/** The sizes at which pages are seen in a language and a scheme. */
function sizesFor(language, scheme) {
  const { desk, phone } = SIZES
  if (ALL) return { ...SIZES, ...(language === 'en' && scheme === 'light' && EXTREMES) }
  return (language === 'en') === (scheme === 'dark') ? { desk } : { phone }
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
  // Text that still fades in has too little contrast.
  await still(page)
  const found = await mistakes(page)
  await fits(page).catch((error) => found.push(`${error.actual} pixels too wide`))
  return found.map((problem) => `${path}: ${problem}`)
}

describe('every page', { concurrency: ALL ? 2 : 1 }, () => {
  before(async () => {
    await inBrowser('pages-before', { locale: 'en-GB' }, async (page) => {
      await signIn(page)
      await ask(page, 'POST', '/announcements', { level: 'warning', text: { english: 'Power cut', chinese: '停电' } })
      // One that waits, so that the queue has a row.
      await ask(page, 'PUT', '/users/admin/quota', { limits: { instances: 1 } })
      await ask(page, 'POST', '/instances', { name: 'waits', cpus: 0.1, memory_bytes: 2 ** 27 })
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
            for (const [size, viewport] of Object.entries(sizesFor(language, scheme))) {
              await page.setViewportSize(viewport)
              for (const one of PAGES) {
                const [path, name = '', remembered = {}] = [one].flat()
                await remember(page, remembered)
                problems.push(...(await look(page, path)).map((problem) => `${size} ${name} ${problem}`))
                if (ALL) await shoot(`${size}${path.replaceAll(/[/?=+]/g, '-')}${name.replaceAll(' ', '-')}`)
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

// After the pages: rules stand before all of them until they are agreed to.
for (const [language, scheme] of [
  ['zh-CN', 'dark'],
  ['en', 'light'],
]) {
  test(`dialogs: ${language}, ${scheme}`, async () => {
    await inBrowser(`dialogs-${language}`, { locale: language, colorScheme: scheme }, async (page, shoot) => {
      const problems = []
      const lookAt = async (name) => {
        await page.getByRole('dialog').waitFor()
        await still(page)
        problems.push(...(await mistakes(page, '[role=dialog]')).map((problem) => `${name}: ${problem}`))
        await shoot(name)
      }
      const escape = async () => {
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'detached' })
      }
      await signIn(page)
      await page.locator('h1').waitFor()
      // Those of the language before this one.
      await ask(page, 'PUT', '/rules', { english: '', chinese: '' })
      const { password } = await ask(page, 'POST', '/users', { name: `first-${scheme}` })
      await page.goto(`${site.url}${INSTANCE}`)
      await page.getByRole('button', { name: /^(Save image|保存镜像)$/ }).click()
      await page.getByRole('dialog').getByText('/userhome', { exact: false }).first().waitFor()
      await lookAt('save')
      await escape()
      await page.getByRole('button', { name: /^(Stop|停止)$/ }).click()
      await lookAt('confirm')
      await escape()
      const rules = `Rules for ${scheme}`
      await ask(page, 'PUT', '/rules', { english: rules, chinese: rules })
      await page.getByRole('dialog').getByText(rules).waitFor()
      await lookAt('rules')
      // Nothing of this page may ask for anything any more.
      await page.goto('about:blank')
      await page.context().clearCookies()
      await signIn(page, { user: `first-${scheme}`, password })
      await page.getByRole('dialog').getByRole('textbox').first().waitFor()
      await lookAt('first-password')
      assert.deepEqual(problems, [])
    })
  })
}
