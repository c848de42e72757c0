// What somebody has typed outlives the session and the network.

import assert from 'node:assert/strict'
import test from 'node:test'

import { inBrowser, signIn, site } from './browser.mjs'

const typed = (page) => page.getByLabel('Name', { exact: false }).first()

test('a form stays filled while the password is asked for again', async () => {
  await inBrowser('session-ends', { locale: 'en-GB', sessionEnds: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/new`)
    await typed(page).fill('kept_1')

    // Out, by another tab of the same browser.
    const other = await page.context().newPage()
    await other.goto(site.url)
    await other.getByRole('button', { name: 'Account of admin' }).click()
    await other.getByRole('menuitem', { name: 'Sign out' }).click()
    await other.getByRole('heading', { name: 'Sign in to Berth' }).waitFor()
    await other.close()

    // The page learns of it by itself.
    const dialog = page.getByRole('dialog', { name: 'Sign in again to go on' })
    await dialog.waitFor()
    await shoot('1-asked')
    assert.equal(await dialog.getByLabel('User name').inputValue(), site.user)
    await dialog.getByLabel('Password', { exact: true }).fill(site.password)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await typed(page).inputValue(), 'kept_1')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'kept_1' }).waitFor()
    await shoot('2-went-on')
  })
})

test('a broken network is said and then forgotten', async () => {
  await inBrowser('network-breaks', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/new`)
    await typed(page).fill('kept_2')
    await page.context().setOffline(true)
    const banner = page.getByText('Connection lost.', { exact: false })
    await banner.waitFor()
    // The button says why it does nothing now, to whoever comes to it by keyboard too.
    const create = page.getByRole('button', { name: 'Create', exact: true })
    await create.and(page.locator('[aria-disabled=true]')).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('tooltip', { name: 'The gateway cannot be reached.', exact: false }).waitFor()
    await shoot('1-broken')
    await page.context().setOffline(false)
    await banner.waitFor({ state: 'detached' })
    assert.equal(await typed(page).inputValue(), 'kept_2')
    await create.click()
    await page.getByRole('heading', { name: 'kept_2' }).waitFor()
  })
})
