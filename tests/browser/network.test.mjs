// A slow line: pages come, say what they wait for, and send nothing twice. Dialogs need no mouse.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, ask, inBrowser, signIn, site } from './browser.mjs'

test('a slow network makes it slow and nothing else', async () => {
  await inBrowser('slow', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    const line = await page.context().newCDPSession(page)
    await line.send('Network.enable')
    // About what a phone has in a lift.
    const slow = { offline: false, latency: 400, downloadThroughput: 150_000, uploadThroughput: 50_000 }
    await line.send('Network.emulateNetworkConditions', slow)
    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    await page.getByRole('link', { name: 'Create instance' }).first().click()
    await page.getByLabel('Name', { exact: false }).first().fill('slow_1')
    const create = page.getByRole('button', { name: 'Create', exact: true })
    const button = await create.elementHandle()
    await create.click()
    // As somebody does who thinks that nothing happens; a button that is busy takes no clicks. It may be gone already.
    await button.click({ force: true }).catch(() => {})
    await shoot('1-sent')
    await page.getByRole('heading', { name: 'slow_1' }).waitFor()
    await shoot('2-there')
    const { items } = await ask(page, 'GET', '/instances')
    assert.equal(items.length, 1)
  })
})

test('dialogs work by keyboard', async () => {
  await inBrowser('keyboard', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances`)
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'slow_1' }) })
    const remove = row.getByRole('button', { name: 'Delete' })
    // What is offered depends on its state.
    await row.getByText('Running', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await remove.focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Delete slow_1?' })
    await dialog.waitFor()
    const focused = (name) => page.waitForFunction((name) => document.activeElement?.textContent?.trim() === name, name)
    await focused('Cancel')
    await shoot('1-cancel-first')
    // Tab stays within.
    for (let step = 0; step < 6; step += 1) {
      await page.keyboard.press('Tab')
      assert(await dialog.evaluate((element) => element.contains(document.activeElement)), `step ${step} left it`)
    }
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    // And the focus is where it came from.
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label')?.startsWith('Delete'))

    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Go to a page, an instance, a command…').fill('slow_1')
    await page.locator('[data-action]').filter({ hasText: 'slow_1' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'slow_1' }).waitFor()
    await page.goto(`${site.url}/instances`)
    await remove.focus()
    await page.keyboard.press('Enter')
    await focused('Cancel')
    // One that runs can be saved first: that is offered on the way.
    await dialog.getByRole('button', { name: 'Save an image first' }).waitFor()
    await page.keyboard.press('Tab')
    await focused('Save an image first')
    await page.keyboard.press('Tab')
    await focused('Delete')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
  })
})
