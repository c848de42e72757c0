// Pages that are open show what others do meanwhile, and after a broken connection what they have missed.

import assert from 'node:assert/strict'
import test from 'node:test'

import { addPerson, ask, asProgram, inBrowser, isSameDocument, markDocument, signal, signalled, signIn, site } from './browser.mjs'

test('every view is live', async () => {
  await inBrowser('live', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    // Another window of the same user does things.
    const other = await page.context().newPage()
    await other.goto(`${site.url}/help`)
    await other.locator('h1').waitFor()
    const act = (method, path, body) => ask(other, method, path, body)
    /** Looks at a page, does something elsewhere, and waits until the page shows it. */
    const shows = async (path, before, doing, after) => {
      await page.goto(`${site.url}${path}`)
      await before(page).first().waitFor()
      await markDocument(page)
      await doing()
      await after(page).first().waitFor()
      await isSameDocument(page)
    }
    const heading = (name) => (on) => on.getByRole('heading', { name })

    await shows('/', heading('Hello, admin'), () => act('POST', '/announcements', { level: 'info', text: { english: 'Power cut at noon' } }), (on) =>
      on.getByText('Power cut at noon'))
    await shows('/admin/users', heading('Administration'), () => act('POST', '/users', { name: 'dora' }), (on) =>
      on.getByRole('row').filter({ hasText: 'dora' }))
    await shows('/admin/groups', heading('Administration'), () => act('POST', '/groups', { name: 'vision' }), (on) =>
      on.getByText('vision', { exact: true }))
    await shows('/admin/audit', heading('Administration'), () => act('POST', '/groups', { name: 'speech' }), (on) =>
      on.getByRole('row').filter({ hasText: 'speech' }))
    await shows('/settings/tokens', heading('No tokens yet'), () => act('POST', '/tokens', { name: 'nightly', scope: 'read', days: 3 }), (on) =>
      on.getByRole('row').filter({ hasText: 'nightly' }))

    // Nothing fits into a quota of nothing: what is made waits.
    await act('PUT', '/users/admin/quota', { limits: { instances: 0 } })
    const wanted = { name: 'patient', cpus: 1, memory_bytes: 256 * 2 ** 20 }
    await shows('/queue', heading('Nothing waits'), () => act('POST', '/instances', wanted), (on) =>
      on.getByRole('row').filter({ hasText: 'patient' }))
    await shoot('queue')
    await shows('/admin/instances', (on) => on.getByRole('row').filter({ hasText: 'patient' }), () => act('DELETE', '/instances/patient'), (on) =>
      on.getByText('Nobody has an instance.'))
    await act('PUT', '/users/admin/quota', { limits: {} })

    // Somebody else's page: of what is not one's own there is only the news that something has changed.
    const erin = await addPerson(other, { name: 'erin' })
    await act('PUT', '/users/erin/quota', { limits: { instances: 0, jobs: 0 } })
    const { token } = await asProgram()('POST', '/session', { ...erin, client: 'cli' })
    const asErin = asProgram(token)
    const file = 'berth: 1\nname: theirs\nimage: localhost/berth/base:latest\ncommand: sleep infinity\n'
    const state = (word) => (on) => on.locator('[aria-live=polite]').first().getByText(word, { exact: true })
    for (const [kind, body] of [['instances', { ...wanted, name: 'theirs' }], ['jobs', { file }]]) {
      const { id } = await asErin('POST', `/${kind}`, body)
      await shows(`/${kind}/${id}`, state('Waiting'), () => asErin('POST', `/${kind}/${id}/stop`), state('Stopped'))
    }
  })
})

test('what happened while the connection was lost is there after it came back', async () => {
  await inBrowser('drop', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances`)
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
    await markDocument(page)

    signal('kill-the-gateway')
    const banner = page.getByText('Connection lost.', { exact: false })
    await banner.waitFor()
    await page.getByText(/Last update .* ago/).waitFor()
    await shoot('1-lost')
    // Not before something was missed.
    await page.context().setOffline(true)
    signal('saw-the-banner')
    await signalled('something-happened')
    assert.equal(await page.getByRole('link', { name: 'missed_1' }).count(), 0)
    await page.context().setOffline(false)
    await page.getByRole('link', { name: 'missed_1' }).waitFor()
    await banner.waitFor({ state: 'detached' })
    await isSameDocument(page)
    await shoot('2-back')

    // And live again.
    signal('do-something-more')
    await page.getByRole('link', { name: 'later_1' }).waitFor()
    await isSameDocument(page)
  })
})
