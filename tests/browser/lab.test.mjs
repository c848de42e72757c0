// JupyterLab in the console: from the first click to the output of a cell.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, framed, inBrowser, signIn, site } from './browser.mjs'

test('a cell runs in JupyterLab', async () => {
  await inBrowser('lab', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'notes' }) })
    await row.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Lab (JupyterLab)' }).click()
    const lab = await framed(page, 'JupyterLab of notes')
    await lab.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: APP_LIMIT_MS })
    const cell = lab.locator('.jp-Notebook .jp-CodeCell .cm-content').first()
    await cell.click({ timeout: APP_LIMIT_MS })
    // What is run before the kernel is there is not run at all.
    await lab.getByText('Python 3 (ipykernel) | Idle').waitFor({ timeout: APP_LIMIT_MS })
    await page.keyboard.type('print(6 * 7, "from a cell")')
    await page.keyboard.press('Shift+Enter')
    const output = lab.locator('.jp-OutputArea-output').getByText('42 from a cell')
    await output.waitFor({ timeout: APP_LIMIT_MS })
    await shoot('1-cell')

    // A look at another tab, and back: the page in the frame is the same one.
    const document = page.frame({ url: /lab--notes--admin/ })
    assert(document, 'JupyterLab is not at an address of its own')
    await document.evaluate(() => {
      globalThis.sameDocument = true
    })
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Specification' }).waitFor()
    await page.getByRole('tab', { name: 'Lab', exact: true }).click()
    await output.waitFor()
    assert.equal(await document.evaluate(() => globalThis.sameDocument), true, 'the frame was reloaded')

    // And in a tab of its own, where nothing of the console is around it.
    const opening = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Open in a new tab' }).click()
    const own = await opening
    await own.waitForURL(/^http:\/\/lab--notes--admin\./, { timeout: APP_LIMIT_MS })
    await own.locator('#jp-top-panel').waitFor({ timeout: APP_LIMIT_MS })
    assert(!own.url().includes('ticket'), `the address still signs in: ${own.url()}`)
    assert.equal(await own.evaluate(() => globalThis.opener), null, 'it can reach the console’s window')
    await own.screenshot()
    await own.close()
  })
})

test('whoever is not signed in is led through the console, and nowhere else', async () => {
  await inBrowser('enter', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    const address = new URL(site.url)
    address.hostname = 'lab--notes--admin.localhost'
    await page.goto(`${address.origin}/lab/tree`)
    await page.waitForURL(`${address.origin}/lab/tree`, { timeout: APP_LIMIT_MS })
    await page.locator('#jp-top-panel').waitFor({ timeout: APP_LIMIT_MS })

    for (const host of ['lab--notes--somebody', 'evil.example', 'lab--notes--admin.evil']) {
      await page.goto(`${site.url}/enter?host=${host}&next=//evil.example/`)
      await page.getByText('There is nothing of yours at this address.').waitFor()
      assert.equal(new URL(page.url()).origin, new URL(site.url).origin)
    }
    await shoot('1-nothing-there')
  })
})
