// What whoever runs a site does in the browser: set it up, see who waits and why, and take back what others hold.

import assert from 'node:assert/strict'
import test from 'node:test'

import {
  addPerson,
  APP_LIMIT_MS,
  ask,
  asProgram,
  counts,
  eventually,
  inBrowser,
  signIn,
  signOut,
  site,
} from './browser.mjs'

const SMALL = { cpus: 0.1, memory_bytes: 2 ** 27 }
const OWN_PASSWORD = 'four unrelated words here'

test('whoever has just got a password of their own is led through the set-up', async () => {
  await inBrowser('set-up', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    const { password } = await ask(page, 'POST', '/users', { name: 'helga', role: 'admin' })
    await signOut(page)

    await signIn(page, { user: 'helga', password })
    const choosing = page.getByRole('dialog', { name: 'Choose a password of your own' })
    await choosing.getByLabel('Current password').fill(password)
    await choosing.getByLabel('New password', { exact: true }).fill(OWN_PASSWORD)
    await choosing.getByLabel('New password again').fill(OWN_PASSWORD)
    await choosing.getByRole('button', { name: 'Change password' }).click()

    await page.getByRole('heading', { name: 'Set up this site' }).waitFor()
    await page.getByLabel('Name of the site').fill('Vision Lab')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('banner').getByText('Vision Lab').waitFor()
    await shoot('1-named')
    await page.getByRole('button', { name: 'Finish set-up' }).click()
    await page.getByRole('heading', { name: 'Hello, helga' }).waitFor()
    // It does not come back by itself.
    await page.reload()
    await page.getByRole('heading', { name: 'Hello, helga' }).waitFor()
    // The page knows the site by now.
    await page.getByRole('banner').getByText('Vision Lab').waitFor()
    assert.equal(await page.getByText('Set up this site').count(), 0)
    await shoot('2-finished')
  })
})

test('what waits says where it stands and leaves the queue; what started says how long each step took', async () => {
  await inBrowser('queue', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    await ask(page, 'PUT', '/users/admin/quota', { limits: { instances: 1 } })
    for (const name of ['runs', 'next', 'last']) await ask(page, 'POST', '/instances', { ...SMALL, name })

    await page.goto(`${site.url}/instances/last`)
    await page.getByText('Place 2 of 2 in the queue').first().waitFor()
    const steps = page.getByRole('list', { name: 'Start', exact: true }).getByRole('listitem')
    await counts(steps, 5)
    await page.locator('[aria-current=step]').filter({ hasText: /^Find room.*quota/ }).waitFor()
    await shoot('1-waits')

    await page.goto(`${site.url}/instances/runs`)
    const state = page.locator('[aria-live=polite]').first()
    await state.getByText('Running', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await page.getByRole('tab', { name: 'Events' }).click()
    await counts(steps, 5)
    for (const step of ['Find room', 'Start the container']) {
      await steps.filter({ hasText: step }).getByText(/· \d/).waitFor()
    }
    await steps.filter({ hasText: 'Ready' }).waitFor()
    await shoot('2-started')

    await page.goto(`${site.url}/queue`)
    const row = (name) => page.getByRole('row').filter({ hasText: name })
    await row('last').getByRole('button', { name: 'Leave the queue' }).click()
    const asked = page.getByRole('dialog', { name: 'Take last out of the queue?' })
    await asked.getByText('It is stopped and keeps its files.', { exact: false }).waitFor()
    await asked.getByRole('button', { name: 'Leave the queue' }).click()
    await row('last').waitFor({ state: 'detached' })
    await row('next').waitFor()
    await page.goto(`${site.url}/instances/last`)
    await state.getByText('Stopped', { exact: true }).waitFor()
    await page.goto(`${site.url}/instances/next`)
    await page.getByText('Place 1 of 1 in the queue').first().waitFor()
  })
})

test('what others hold is taken back', async () => {
  await inBrowser('take-back', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    const { user, password } = await addPerson(page, { name: 'erin' })
    const { token } = await asProgram()('POST', '/session', { user, password, client: 'cli' })
    const file = 'berth: 1\nname: theirs\nimage: localhost/berth/base:latest\nmemory: 128M\ncommand: sleep infinity\n'
    const { id } = await asProgram(token)('POST', '/jobs', { file })

    await page.goto(`${site.url}/admin/jobs`)
    await page.getByRole('link', { name: 'theirs' }).click()
    const state = page.locator('[aria-live=polite]').first()
    await state.getByText('Running', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await page.getByRole('button', { name: 'Time limit' }).click()
    const limit = page.getByRole('dialog', { name: 'Time limit of theirs' })
    await limit.getByLabel('Hours from its start').fill('2')
    await limit.getByText('Show as CLI / API').click()
    await limit.getByText(`berth change ${id} --time-limit 2h`).waitFor()
    await shoot('1-limit')
    await limit.getByRole('button', { name: 'Save' }).click()
    await limit.waitFor({ state: 'detached' })
    const timeLimit = async () => (await ask(page, 'GET', `/jobs/${id}`)).time_limit_seconds
    await eventually(timeLimit, 7200, { what: 'the time limit in seconds' })

    const confirm = async (title, button) => {
      const dialog = page.getByRole('dialog', { name: title })
      await dialog.getByRole('button', { name: button, exact: true }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await confirm('Stop theirs?', 'Stop')
    await state.getByText('Stopped', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await confirm('Delete theirs?', 'Delete')
    await page.goto(`${site.url}/admin/jobs`)
    await page.getByText('Nobody has submitted a job.').waitFor()

    await page.goto(`${site.url}/admin/users`)
    const row = page.getByRole('row').filter({ hasText: 'erin' })
    await row.getByRole('button', { name: 'Disable erin' }).click()
    await confirm('Disable erin?', 'Disable')
    await row.getByText('Disabled').waitFor()
    await shoot('2-disabled')
    await row.getByRole('button', { name: 'Enable erin' }).click()
    await row.getByText('Active').waitFor()
    await row.getByRole('button', { name: 'Remove erin' }).click()
    await confirm('Remove erin?', 'Remove')
    await row.getByText('Removed').waitFor()
    await row.getByRole('button', { name: 'Restore erin' }).click()
    await row.getByText('Active').waitFor()
  })
})
