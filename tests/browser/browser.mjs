// A browser and its pages, for the walks beside this file.
//
// Debian's own Chromium, so that nothing is downloaded. A page that logs an error or throws fails the walk. A failed walk
// leaves screenshots, a trace, console messages and failed requests in the folder FAILURES.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import { chromium } from 'playwright-core'

/** Far longer than anything takes, on a machine that is busy with other tests and builds. */
const LIMIT_MS = 120_000

/** The same for an app that starts, in an instance that shares the machine with all other tests. */
export const APP_LIMIT_MS = 300_000

/** Ends a walk that hangs while there is still time to keep what its pages show. */
const WALK_LIMIT_MS = Number(needed('WALK_LIMIT_SECONDS')) * 1000

/** The file that appears when the test beside the walk has failed. */
const GIVE_UP = join(needed('SIGNALS'), 'give-up')
const GAVE_UP = 'the test beside the walk failed; see its own output'

/** The pause between two checks of a condition that no page can wait for. */
const PAUSE_MS = 50

// `localhost` has two addresses. By default Node gives up on the first one after 250 ms, which a busy machine exceeds.
setDefaultAutoSelectFamilyAttemptTimeout(LIMIT_MS)

const CHROMIUM = {
  timeout: APP_LIMIT_MS,
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
const failures = needed('FAILURES')
mkdirSync(screenshots, { recursive: true })
mkdirSync(failures, { recursive: true })

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
 *   with `gatewayGoes` it is no error of the page that the gateway or its cluster cannot be reached, with `sessionEnds`
 *   none that it is refused, with `refusals` none that the gateway refuses a request that is in vain
 * @param {(page: import('playwright-core').Page, shoot: (step: string) => Promise<void>) => Promise<void>} walk
 */
export async function inBrowser(name, { gatewayGoes = false, sessionEnds = false, refusals = false, ...options }, walk) {
  // With a profile, as users have one: Debian's Chromium keeps nothing for framed pages of another site. An empty name
  // makes a temporary one.
  const context = await chromium.launchPersistentContext('', {
    ...CHROMIUM,
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  context.setDefaultTimeout(LIMIT_MS)
  const recorded = record(context)
  try {
    // A film too would take CPU time from what is tested; every step has a snapshot of its page.
    await context.tracing.start({ snapshots: true, sources: true })
    const page = await context.newPage()
    const errors = watch(page, { gatewayGoes, sessionEnds, refusals })
    const shoot = async (step) => {
      await page.screenshot({ path: join(screenshots, `${name}-${step}.png`) })
    }
    await beforeDeadline(walk(page, shoot)).catch((error) => {
      if (errors.length === 0) throw error
      throw new Error(`${error.message}\nthe page said:\n${errors.join('\n')}`, { cause: error })
    })
    assert.deepEqual(errors, [], 'the page has errors')
  } catch (error) {
    await keep(name, context, recorded)
    throw error
  } finally {
    // The browser may be gone; that must not hide the error of the walk.
    await context.close().catch((error) => console.error(`cannot close the browser: ${error}`))
  }
}

/** Fails a walk that hangs, or whose test has failed beside it. */
async function beforeDeadline(walk) {
  let deadline, looking
  const over = new Promise((_, reject) => {
    deadline = setTimeout(() => reject(new Error('the walk hangs')), WALK_LIMIT_MS - performance.now())
    looking = setInterval(() => {
      if (existsSync(GIVE_UP)) reject(new Error(GAVE_UP))
    }, PAUSE_MS)
  })
  try {
    await Promise.race([walk, over])
  } finally {
    clearTimeout(deadline)
    clearInterval(looking)
  }
}

/** Records the console messages and failed requests of all pages, with the times that the gateway's log has too. */
function record(context) {
  const messages = []
  const requests = []
  const note = (list, line) => list.push(`${new Date().toISOString()} ${line}\n`)
  context.on('console', (message) => {
    const { url, lineNumber } = message.location()
    note(messages, `${message.type()}: ${message.text()} (${url}:${lineNumber}), on ${message.page()?.url()}`)
  })
  context.on('weberror', (error) => {
    note(messages, `${error.error().stack ?? error.error()}, on ${error.page()?.url()}`)
  })
  context.on('requestfailed', (request) => {
    note(requests, `${request.method()} ${request.url()}: ${request.failure()?.errorText}`)
  })
  context.on('response', (response) => {
    if (response.status() >= 400) note(requests, `${response.request().method()} ${response.url()}: ${response.status()}`)
  })
  return { messages, requests }
}

/** Keeps the evidence of a failure. Reports what it cannot keep; the failure stays the error of the test. */
async function keep(name, context, { messages, requests }) {
  const path = (what) => join(failures, `${name}-${what}`)
  const pages = context.pages().filter((page) => page.url() !== 'about:blank')
  const urls = pages.map((page, index) => `page ${index + 1}: ${page.url()}\n`)
  const write = async (what, lines) => writeFileSync(path(what), lines.join(''))
  const kept = await Promise.allSettled([
    write('pages.txt', urls),
    write('console.txt', messages),
    write('requests.txt', requests),
    ...pages.map((page, index) => page.screenshot({ path: path(`page-${index + 1}.png`) })),
  ])
  kept.push(...(await Promise.allSettled([context.tracing.stop({ path: path('trace.zip') })])))
  for (const { reason } of kept) if (reason) console.error(`cannot keep all of a failed walk: ${reason}`)
}

/** Whether something comes from the console, and not from a page of an instance. */
function isOurs(url) {
  return url === '' || url.startsWith(site.url)
}

const UNREACHABLE =
  /net::ERR_(FAILED|CONNECTION|CONTENT_LENGTH|SOCKET|EMPTY|INCOMPLETE|INTERNET_DISCONNECTED)|WebSocket connection to|status of 503/

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

/** Signs out, and waits for the sign-in page. */
export async function signOut(page, user = site.user) {
  await page.getByRole('button', { name: `Account of ${user}` }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor()
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
  const path = join(needed('SIGNALS'), name)
  // Whoever sees the file sees all of it.
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

/** What whoever runs the walk has said beforehand. */
export function told(name) {
  return readFileSync(join(needed('SIGNALS'), name), 'utf8')
}

/** Waits until whoever runs the walk has told it. */
export async function signalled(name) {
  const path = join(needed('SIGNALS'), name)
  await eventually(() => existsSync(path), true, { what: `nobody said ${name}`, limit: APP_LIMIT_MS })
}

/** Asks `look` until it answers `wanted`. */
export async function eventually(look, wanted, { what, limit = LIMIT_MS } = {}) {
  const until = performance.now() + limit
  for (;;) {
    const is = await look()
    if (isDeepStrictEqual(is, wanted)) return
    // Else a walk that was given up would go on until its limit.
    if (existsSync(GIVE_UP)) throw new Error(GAVE_UP)
    if (performance.now() > until) {
      throw new assert.AssertionError({ message: what, actual: is, expected: wanted, operator: 'eventually' })
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

/** Waits until so many elements are there. */
export function counts(locator, wanted) {
  return eventually(() => locator.count(), wanted, { what: `not ${wanted} of ${locator}` })
}

/** Waits until the page does not scroll sideways. */
export function fits(page) {
  const tooWide = () => Math.max(0, document.documentElement.scrollWidth - window.innerWidth)
  return eventually(() => page.evaluate(tooWide), 0, { what: 'the page scrolls sideways' })
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
