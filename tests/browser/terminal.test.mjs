// A terminal outlives the gateway: `kill -9`, and after a reload the same shell is there.

import test from 'node:test'

import { inBrowser, signal, signalled, signIn, site, terminalShows } from './browser.mjs'

test('a shell is the same after the gateway was killed', async () => {
  await inBrowser('terminal', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/shell/terminal`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('kept=here; echo before-$((6*7))\n')
    await terminalShows(page, 'before-42')
    await shoot('1-before')

    signal('kill-the-gateway')
    await signalled('gateway-is-back')
    await page.reload()
    await page.getByText('Connected', { exact: true }).waitFor()
    await terminalShows(page, 'before-42')
    await page.keyboard.type('echo $kept-after\n')
    await terminalShows(page, 'here-after')
    await shoot('2-after')
  })
})
