// A browser and its pages, for the walks beside this file.
//
// Debian's own Chromium, so that nothing is downloaded. A page that logs an error or throws fails the walk.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { chromium } from 'playwright-core'

/** Far longer than anything takes, for a machine that is busy with other tests. */
const LIMIT_MS = 30_000

/** The same for an app that starts, in an instance that shares the machine with all other tests. */
export const APP_LIMIT_MS = 120_000

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

// A site with a domain is on this machine all the same, and its certificate is its own.
if (site.url.startsWith('https:')) {
  CHROMIUM.args.push('--host-resolver-rules=MAP *.example.org 127.0.0.1')
  CHROMIUM.ignoreHTTPSErrors = true
}

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
 * @param {import('playwright-core').BrowserContextOptions & { gatewayGoes?: boolean, sessionEnds?: boolean, refusals?: boolean }} options
 *   with `gatewayGoes` it is no error of the page that the gateway cannot be reached, with `sessionEnds` none that it
 *   is refused, with `refusals` none that the gateway refuses a request that is in vain
 * @param {(page: import('playwright-core').Page, shoot: (step: string) => Promise<void>) => Promise<void>} walk
 */
export async function inBrowser(name, { gatewayGoes = false, sessionEnds = false, refusals = false, ...options }, walk) {
  // Debian's Chromium as it comes: it keeps nothing for framed pages of another site.
  const profile = mkdtempSync(join(tmpdir(), 'berth-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    ...CHROMIUM,
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  try {
    const page = await context.newPage()
    page.setDefaultTimeout(LIMIT_MS)
    const errors = watch(page, { gatewayGoes, sessionEnds, refusals })
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
    await context.close()
    rmSync(profile, { recursive: true, force: true })
  }
}

/** Whether something comes from the console, and not from a page of an instance. */
function isOurs(url) {
  return url === '' || url.startsWith(site.url)
}

const UNREACHABLE = /net::ERR_(FAILED|CONNECTION|SOCKET|EMPTY|INCOMPLETE|INTERNET_DISCONNECTED)|WebSocket connection to/

function watch(page, { gatewayGoes, sessionEnds, refusals }) {
  const errors = []
  page.on('pageerror', (error) => {
    const said = `${error.stack ?? error}`
    const [from = site.url] = said.match(/https?:\/\/[^\s)]+/) ?? []
    if (isOurs(from)) errors.push(said)
  })
  page.on('console', (message) => {
    if (message.type() !== 'error') return
    const { url } = message.location()
    // What is framed answers for itself; the console has no service worker, whose errors name no address.
    if (!isOurs(url) || message.text().includes('when fetching the script')) return
    // Not to be signed in is no error, but Chromium logs every answer of that kind as one.
    if (/\/api\/v1\/(me|session)$/.test(url) && message.text().includes('401')) return
    if (sessionEnds && message.text().includes('401')) return
    if (refusals && /status of 4(03|04|09|22)/.test(message.text())) return
    if (gatewayGoes && UNREACHABLE.test(message.text())) return
    errors.push(`${message.text()} (${url})`)
  })
  return errors
}

/** Signs in, in whichever language. */
export async function signIn(page, { user = site.user, password = site.password, url = site.url } = {}) {
  await page.goto(url)
  await page.getByLabel(/^(User name|用户名)/).fill(user)
  await page.getByLabel(/^(Password|密码)/).first().fill(password)
  const button = page.getByRole('button', { name: /^(Sign in|登录)$/ })
  await button.click()
  await button.waitFor({ state: 'hidden' })
}

/** Asks the API as whoever is signed in on the page. */
export function ask(page, method, path, body) {
  return page.evaluate(
    async ([method, path, body]) => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return text === '' ? null : JSON.parse(text)
    },
    [method, path, body],
  )
}

/** Asks the API as a program does, with a token; programs do not find the names that browsers do. */
export function asProgram(token) {
  return async (method, path, body) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const answer = await fetch(`${needed('API')}${path}`, { method, headers, body: body && JSON.stringify(body) })
    const text = await answer.text()
    assert(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
}

/** Somebody new, added by the admin who is signed in on the page; answers with a password of their own. */
export async function addPerson(page, user) {
  const { password: first } = await ask(page, 'POST', '/users', user)
  const signingIn = { user: user.name, password: first, client: 'cli' }
  const { token } = await asProgram()('POST', '/session', signingIn)
  const password = `${first}-of-my-own`
  await asProgram(token)('PUT', '/me/password', { old: first, new: password })
  return { user: user.name, password }
}

/** Marks the document, so that a walk can tell that nobody has loaded it again. */
export async function markDocument(page) {
  await page.evaluate(() => {
    globalThis.sameDocument = true
  })
}

export async function isSameDocument(page) {
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true, 'the page was loaded again')
}

/** Tells whoever runs the walk. */
export function signal(name, text = '') {
  writeFileSync(join(needed('SIGNALS'), name), text)
}

/** What whoever runs the walk has said beforehand. */
export function told(name) {
  return readFileSync(join(needed('SIGNALS'), name), 'utf8')
}

/** Waits until whoever runs the walk has told it. */
export async function signalled(name) {
  const path = join(needed('SIGNALS'), name)
  const until = Date.now() + LIMIT_MS
  while (!existsSync(path)) {
    assert(Date.now() < until, `nobody said ${name}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Waits until the terminal shows a line, or with `within` a line that holds the text. */
export async function terminalShows(page, line, { within = false } = {}) {
  await page.waitForFunction(
    ([line, within]) => {
      const rows = [...document.querySelectorAll('.xterm-rows > div')]
      // A terminal fills the rest of its lines with no-break spaces.
      const texts = rows.map((row) => row.textContent.replaceAll('\u00a0', ' ').trim())
      return texts.some((text) => (within ? text.includes(line) : text === line))
    },
    [line, within],
  )
}

/** The framed app of that title, once it is there. */
export async function framed(page, title) {
  await page.locator(`iframe[title="${title}"]`).waitFor({ timeout: APP_LIMIT_MS })
  return page.frameLocator(`iframe[title="${title}"]`)
}

/** Stops the instance whose page is open, and says so when asked. */
export async function stopInstance(page, name) {
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  const asking = page.getByRole('dialog', { name: `Stop ${name}?` })
  await asking.getByText('All files stay, in /userhome and elsewhere.').waitFor()
  await asking.getByRole('button', { name: 'Stop', exact: true }).click()
}

/** Runs a line in the first cell of the notebook that is open in JupyterLab, and waits for what it prints. */
export async function runCell(page, lab, line, printed) {
  await lab.locator('.jp-Notebook .jp-CodeCell .cm-content').first().click({ timeout: APP_LIMIT_MS })
  // What is run before the kernel is there is not run at all.
  await lab.getByText('Python 3 (ipykernel) | Idle').waitFor({ timeout: APP_LIMIT_MS })
  await page.keyboard.type(line)
  await page.keyboard.press('Shift+Enter')
  const output = lab.locator('.jp-OutputArea-output').getByText(printed)
  await output.waitFor({ timeout: APP_LIMIT_MS })
  return output
}
