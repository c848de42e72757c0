// Two people in one group and one outside: nobody sees what is another's, until it is shared.

import assert from 'node:assert/strict'
import test from 'node:test'

import { addPerson, APP_LIMIT_MS, ask, inBrowser, signIn, site } from './browser.mjs'

const SMALL = { cpus: 1, memory_bytes: 256 * 2 ** 20 }

/** Walks as one of them, in a browser of their own. */
const as = (who, walk) =>
  inBrowser(`two-users-${who.user}`, { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page, who)
    await page.getByRole('heading', { name: `Hello, ${who.user}` }).waitFor()
    await walk(page, shoot)
  })

test('what is mine is mine, until I share it', async () => {
  const people = {}
  await inBrowser('two-users', { locale: 'en-GB' }, async (page) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    await ask(page, 'POST', '/groups', { name: 'vision' })
    people.dan = await addPerson(page, { name: 'dan', group: 'vision' })
    people.eve = await addPerson(page, { name: 'eve', group: 'vision' })
    people.frank = await addPerson(page, { name: 'frank' })
    // Whatever they make after their first instance waits.
    await ask(page, 'PUT', '/groups/vision/quota', { limits: { instances: 1 } })
  })

  await as(people.dan, async (page, shoot) => {
    await ask(page, 'POST', '/instances', { ...SMALL, name: 'private_dan' })
    await page.goto(`${site.url}/instances/private_dan`)
    const state = page.locator('[aria-live=polite]').first()
    await state.getByText('Running', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await ask(page, 'POST', '/instances/private_dan/save', { name: 'ours', tag: 'v1', share: 'group' })
    await page.goto(`${site.url}/images`)
    const row = page.getByRole('row').filter({ hasText: 'ours:v1' })
    await row.getByText('Ready', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await ask(page, 'POST', '/instances', { ...SMALL, name: 'waits_dan' })
    await page.goto(`${site.url}/queue`)
    await page.getByRole('row').filter({ hasText: 'waits_dan' }).waitFor()
    await shoot('1-own-queue')
  })

  await as(people.eve, async (page, shoot) => {
    await page.goto(`${site.url}/instances`)
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
    // By the very address too.
    await page.goto(`${site.url}/instances/private_dan`)
    await page.getByRole('alert').filter({ hasText: 'There is no instance named “private_dan”' }).waitFor()
    assert.equal(await page.getByRole('tab').count(), 0)
    await shoot('1-not-there')
    await page.goto(`${site.url}/images?group=others`)
    await page.getByRole('row').filter({ hasText: 'ours:v1' }).waitFor()
    await shoot('2-shared')
    await page.goto(`${site.url}/queue`)
    await page.getByRole('row').filter({ hasText: 'Somebody else’s instance' }).waitFor()
    assert.equal(await page.getByText('waits_dan').count(), 0)
    assert.equal(await page.getByText('dan', { exact: true }).count(), 0)
    await shoot('3-queue')
  })

  await as(people.frank, async (page) => {
    await page.goto(`${site.url}/images?group=others`)
    await page.getByRole('heading', { name: 'Nobody shares an image with you' }).waitFor()
    const offered = await ask(page, 'GET', '/images')
    assert.deepEqual(offered.items.filter(({ reference }) => reference.includes('ours')), [])
    assert.equal(await page.getByText('ours:v1').count(), 0)
  })
})
