// A site with a domain and TLS, as it is deployed: the console, its terminal, and apps at hosts of their own.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, ask, framed, inBrowser, runCell, signIn, site, terminalShows } from './browser.mjs'

test('a terminal, a page with a WebSocket and JupyterLab by TLS', async () => {
  await inBrowser('secured', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    assert.equal(new URL(page.url()).origin, site.url)
    const cookies = await page.context().cookies()
    assert.deepEqual(
      cookies.filter(({ secure }) => !secure).map(({ name }) => name),
      [],
      'a cookie goes over plain HTTP too',
    )

    await page.goto(`${site.url}/instances/web/terminal`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('echo by-tls-$((6*7))\n')
    await terminalShows(page, 'by-tls-42')
    await shoot('1-terminal')

    await page.goto(`${site.url}/instances/notes/lab`)
    const lab = await framed(page, 'JupyterLab of notes')
    await lab.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: APP_LIMIT_MS })
    await runCell(page, lab, 'print(6 * 7, "by TLS")', '42 by TLS')
    await shoot('2-lab')

    const { url } = await ask(page, 'POST', '/instances/web/apps/9000/open', { path: '/page' })
    await page.goto(url)
    await page.getByText('an echo', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    assert.match(page.url(), /^https:\/\/9000--web--admin\.apps\.example\.org:\d+\/page$/)
    await shoot('3-page')

    // The same by its number.
    await page.goto(`${site.url}/instances/web/ports`)
    const number = page.getByLabel('Port', { exact: true })
    await number.fill('70000')
    await page.getByText('Enter a number from 1 to 65535.').waitFor()
    await number.fill('9000')
    const link = page.getByRole('link', { name: 'Open in a new tab' })
    const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click()])
    await tab.waitForURL(/^https:\/\/9000--web--admin\.apps\.example\.org:\d+\/$/)
    await tab.getByText('"who": "admin"', { exact: false }).waitFor()
    await tab.close()
    await page.goto(url.replace(/\/\.berth\/.*/, '/page'))

    // Whoever types the address of an app is led through the console, and back.
    await page.context().clearCookies({ domain: new URL(page.url()).hostname })
    await page.reload()
    await page.getByText('an echo', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
  })
})
