// A browser and its pages, for the walks beside this file.
//
// Debian's own Chromium, so that nothing is downloaded. A page that logs an error or throws fails the walk.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { chromium } from 'playwright-core'

/** Far longer than anything takes, for a machine that is busy with other tests. */
const LIMIT_MS = 30_000

const CHROMIUM = {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-dev-shm-usage',
  ],
}

export const site = { url: needed('URL'), user: 'admin', password: needed('PASSWORD') }

const screenshots = needed('SCREENSHOTS')
mkdirSync(screenshots, { recursive: true })

function needed(name) {
  const value = process.env[name]
  assert(value, `the variable ${name} is missing; tests/e2e/console.rs sets it`)
  return value
}

/**
 * Walks in a fresh browser. `walk` gets a page and `shoot`, which keeps a screenshot.
 *
 * @param {string} name names the screenshots
 * @param {import('playwright-core').BrowserContextOptions} options
 * @param {(page: import('playwright-core').Page, shoot: (step: string) => Promise<void>) => Promise<void>} walk
 */
export async function inBrowser(name, options, walk) {
  const browser = await chromium.launch(CHROMIUM)
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    page.setDefaultTimeout(LIMIT_MS)
    const errors = watch(page)
    const shoot = async (step) => {
      await page.screenshot({ path: join(screenshots, `${name}-${step}.png`) })
    }
    try {
      await walk(page, shoot)
    } catch (error) {
      await shoot('failed')
      if (errors.length > 0) error.message += `\nthe page said:\n${errors.join('\n')}`
      throw error
    }
    assert.deepEqual(errors, [], 'the page has errors')
  } finally {
    await browser.close()
  }
}

function watch(page) {
  const errors = []
  page.on('pageerror', (error) => errors.push(`${error.stack ?? error}`))
  page.on('console', (message) => {
    if (message.type() !== 'error') return
    const { url } = message.location()
    // Not to be signed in is no error, but Chromium logs every answer of that kind as one.
    if (/\/api\/v1\/(me|session)$/.test(url) && message.text().includes('401')) return
    errors.push(`${message.text()} (${url})`)
  })
  return errors
}

/** Signs in. */
export async function signIn(page) {
  await page.goto(site.url)
  await page.getByLabel('User name').fill(site.user)
  await page.getByLabel('Password', { exact: true }).fill(site.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor({ state: 'hidden' })
}
