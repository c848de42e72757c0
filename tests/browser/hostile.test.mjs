// A page that means harm, at the address of an app, in the browser of somebody who is signed in. The console and all apps
// are below one domain here, so that browsers hold them for one site: the hardest place for us.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, ask, asProgram, eventually, inBrowser, signIn, site, told } from './browser.mjs'

/** The one who means harm, with an instance `web` as the admin has one. */
const mallory = { user: 'mallory', password: told('mallory') }

/** Opens the app in a page of its own, until it answers. */
async function open(page, asking) {
  const { url } = await asking('POST', '/instances/web/apps/9000/open', { path: '/page' })
  await page.goto(url)
  await page.getByText('an echo', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
  return new URL(page.url()).origin
}

/** Everything that a page can try against others, and what came of it. Runs in the page. */
async function attack({ home, app }) {
  const tried = async (what) => {
    try {
      return await what()
    } catch (error) {
      return `refused: ${error.name}`
    }
  }
  const asked = (url, options) =>
    tried(async () => {
      const answer = await fetch(url, { credentials: 'include', ...options })
      return `${answer.type} ${answer.status} ${await answer.text()}`
    })
  const socket = (url) =>
    new Promise((resolve) => {
      const opened = new WebSocket(url.replace('http', 'ws'))
      opened.onopen = () => resolve('opened')
      opened.onerror = () => resolve('refused')
    })
  const posted = (url) =>
    new Promise((resolve) => {
      const frame = document.createElement('iframe')
      frame.name = `to-${Math.random()}`
      document.body.append(frame)
      const form = document.createElement('form')
      Object.assign(form, { method: 'post', action: url, target: frame.name, enctype: 'text/plain' })
      document.body.append(form)
      frame.onload = () => resolve('answered')
      form.submit()
    })
  const shown = (url) =>
    new Promise((resolve) => {
      const frame = document.createElement('iframe')
      frame.onload = () => resolve('loaded')
      frame.src = url
      document.body.append(frame)
    })
  const stop = `${home}/api/v1/instances/web/stop`
  const { hostname } = location
  const domain = hostname.slice(hostname.indexOf('.') + 1)
  const site = domain.slice(domain.indexOf('.') + 1)
  for (const name of ['__Host-berth', '__Host-berth-app', '__Secure-berth', 'berth', 'berth-app']) {
    for (const whose of [domain, site]) {
      document.cookie = `${name}=bst_of-somebody-else; Domain=${whose}; Path=/; Secure; SameSite=None`
    }
  }
  const opened = globalThis.open(`${home}/account`)
  await posted(stop)
  await shown(`${home}/`)
  await shown(`${app}/page`)
  return {
    me: await asked(`${home}/api/v1/me`),
    // What browsers send without asking first.
    stopped: await asked(stop, { method: 'POST', mode: 'no-cors' }),
    stoppedAloud: await asked(stop, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }),
    app: await asked(`${app}/read`),
    appUnread: await asked(`${app}/unread`, { mode: 'no-cors' }),
    appPosted: await asked(`${app}/posted`, { method: 'POST', mode: 'no-cors', body: 'x' }),
    events: await socket(`${home}/api/v1/instances/web/ports/9000`),
    terminal: await socket(`${home}/api/v1/instances/web/terminals/1`),
    appSocket: await socket(`${app}/socket`),
    workerOfConsole: await tried(() => navigator.serviceWorker.register(`${home}/assets/worker.js`)),
    workerElsewhere: await tried(() => navigator.serviceWorker.register('/page', { scope: `${home}/` })),
    window: await tried(() => opened.document.title),
  }
}

test('a page that means harm reaches nothing but itself', async () => {
  await inBrowser('hostile', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    const asAdmin = (method, path, body) => ask(page, method, path, body)
    const { token } = await asProgram()('POST', '/session', { ...mallory, client: 'cli' })
    const asMallory = asProgram(token)
    const [own, theirs] = [await page.context().newPage(), await page.context().newPage()]
    const app = await open(own, asAdmin)

    // Nobody comes to another's app by its address.
    const trap = app.replace('--admin.', '--mallory.')
    await theirs.goto(`${trap}/page`)
    await theirs.getByText('There is nothing of yours at this address.').waitFor()
    // But whoever has an app may send somebody a way in.
    assert.equal(await open(theirs, asMallory), trap)
    const came = await theirs.evaluate(attack, { home: site.url, app })
    await shoot('1-console')
    assert.deepEqual(came, {
      me: 'refused: TypeError',
      stopped: 'opaque 0 ',
      stoppedAloud: 'refused: TypeError',
      app: 'refused: TypeError',
      appUnread: 'opaque 0 ',
      appPosted: 'opaque 0 ',
      events: 'refused',
      terminal: 'refused',
      appSocket: 'refused',
      workerOfConsole: 'refused: SecurityError',
      workerElsewhere: 'refused: SecurityError',
      window: 'refused: SecurityError',
    })
    const framesOf = (page) => page.frames().filter((frame) => frame !== page.mainFrame())
    await eventually(() => framesOf(theirs).length, 3, { what: 'the number of frames' })
    const frames = framesOf(theirs)
    for (const frame of frames) {
      // The browser's own page: what it was sent may not be shown in a frame of this one.
      assert.match(frame.url(), /^chrome-error:/, 'it is shown in a frame')
    }

    // Nothing has happened: not in the app, not to the instance, not to who is signed in.
    const seen = await own.evaluate(async () => (await fetch('/seen')).json())
    assert.deepEqual([...new Set(seen)].filter((line) => !/^GET \/(page|echo|favicon.ico)? HTTP/.test(line)), [])
    await page.reload()
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    assert.equal((await ask(page, 'GET', '/me')).name, 'admin')
    const { status } = await ask(page, 'GET', '/instances/web')
    assert.equal(status.state, 'running')
    await own.reload()
    await own.getByText('an echo', { exact: true }).waitFor()
    await theirs.close()
    await own.close()
  })
})
