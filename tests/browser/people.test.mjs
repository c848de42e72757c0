// An admin tells everyone something, adds a user, and the user comes in for the first time.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'

import { asProgram, inBrowser, signIn, signOut, site } from './browser.mjs'

const OWN_PASSWORD = 'four unrelated words here'

/** What a dialog shows this once. */
function secret(dialog) {
  return dialog.locator('pre').first().textContent()
}

/** Chooses the first of what the palette finds. */
async function find(page, text) {
  await page.keyboard.press('Control+k')
  const palette = page.getByPlaceholder('Go to a page, an instance, a command…')
  await palette.fill(text)
  await page.locator('[data-action]').first().waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  // Until it is gone, the keys are its own.
  await palette.waitFor({ state: 'detached' })
}

/** Presses keys as fast as somebody does who knows them, however slow this machine is. */
async function pressAtOnce(page, keys) {
  const keyboard = await page.context().newCDPSession(page)
  const timestamp = Date.now() / 1000
  for (const key of keys) {
    await keyboard.send('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key, timestamp })
    await keyboard.send('Input.dispatchKeyEvent', { type: 'keyUp', key, timestamp })
  }
}

test('a new user is told the news, agrees to the rules and makes a key', async () => {
  await inBrowser('people', { locale: 'en-GB', acceptDownloads: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/admin/announcements`)
    const texts = page.getByRole('textbox', { name: 'English' })
    const [announcement, rules] = [texts.first(), texts.nth(1)]
    await announcement.fill('Maintenance on Monday')
    await rules.fill('Release the GPUs that you do not use.')
    await page.getByRole('button', { name: 'Announce', exact: true }).click()
    await page.getByText('shown now').first().waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    // Whoever makes the rules agrees to them too.
    await page.getByRole('button', { name: 'I have read and agree' }).click()
    await page.getByRole('dialog', { name: 'Rules of use' }).waitFor({ state: 'detached' })
    await shoot('1-announced')

    await page.getByRole('tab', { name: 'Users' }).click()
    await page.getByRole('button', { name: 'Add user' }).click()
    const adding = page.getByRole('dialog', { name: 'Add user' })
    await adding.getByRole('textbox', { name: 'User name' }).fill('carol')
    await adding.getByText('Show as CLI / API').click()
    await adding.getByText('berth user add carol').waitFor()
    await adding.getByRole('button', { name: 'Add', exact: true }).click()
    await adding.getByText('First password of carol, shown this once').waitFor()
    const password = await secret(adding)
    await shoot('2-first-password')
    await adding.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('row').filter({ hasText: 'carol' }).getByText('Active').waitFor()
    await signOut(page)

    await signIn(page, { user: 'carol', password })
    const choosing = page.getByRole('dialog', { name: 'Choose a password of your own' })
    await choosing.getByLabel('Current password').fill(password)
    await choosing.getByLabel('New password', { exact: true }).fill(OWN_PASSWORD)
    await choosing.getByLabel('New password again').fill(OWN_PASSWORD)
    await choosing.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Release the GPUs that you do not use.').first().waitFor()
    await shoot('3-rules')
    await page.getByRole('button', { name: 'I have read and agree' }).click()
    await page.getByText('Maintenance on Monday').first().waitFor()
    await shoot('4-home')
    assert.equal(await page.getByRole('link', { name: 'Administration' }).count(), 0)

    await page.getByRole('link', { name: 'Add an SSH key' }).click()
    await page.getByRole('button', { name: 'Make a new pair' }).click()
    const making = page.getByRole('dialog', { name: 'Make a new pair' })
    await making.getByLabel('Name').fill('laptop')
    await making.getByRole('button', { name: 'Make the pair' }).click()
    const download = page.waitForEvent('download')
    await making.getByRole('button', { name: 'Download berth-laptop' }).click()
    const file = readFileSync(await (await download).path(), 'utf8')
    assert(file.startsWith('-----BEGIN OPENSSH PRIVATE KEY-----'), file)
    await shoot('5-pair')
    await making.getByRole('button', { name: 'I have saved it' }).click()
    await page.getByRole('row').filter({ hasText: 'laptop' }).waitFor()

    await page.getByRole('tab', { name: 'Tokens' }).click()
    await page.getByRole('button', { name: 'Make a token' }).click()
    const token = page.getByRole('dialog', { name: 'Make a token' })
    await token.getByRole('textbox', { name: 'Name' }).fill('script')
    await token.getByRole('button', { name: 'Make', exact: true }).click()
    await token.getByText('Your token, shown this once').waitFor()
    const made = await secret(token)
    const me = await asProgram(made)('GET', '/me')
    assert.equal(me.name, 'carol')
    await token.getByRole('button', { name: 'I have saved it' }).click()
    await token.waitFor({ state: 'detached' })

    await find(page, 'activ')
    await page.getByRole('row').filter({ hasText: 'Make token' }).waitFor()
    await shoot('6-activity')

    // By a word of the platform that one comes from, and by single keys.
    await find(page, '作业管理')
    await page.getByRole('heading', { name: 'Jobs', level: 1 }).waitFor()
    await pressAtOnce(page, 'gi')
    await page.getByRole('heading', { name: 'Instances', level: 1 }).waitFor()
    await page.keyboard.type('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await shoot('7-keys')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor({ state: 'detached' })
  })
})
