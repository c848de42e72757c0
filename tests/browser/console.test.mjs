// From signing in to deleting an instance, by hand.

import assert from 'node:assert/strict'
import test from 'node:test'

import {
  APP_LIMIT_MS,
  inBrowser,
  isSameDocument,
  markDocument,
  signIn,
  site,
  stopInstance,
  terminalShows,
} from './browser.mjs'

/** The state beside the heading of an instance's page. */
async function becomes(page, state) {
  await page.locator('[aria-live=polite]').getByText(state, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
}

test('an instance from its making to its end', async () => {
  await inBrowser('instance', { locale: 'en-GB' }, async (page, shoot) => {
    await page.goto(site.url)
    await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor()
    await shoot('1-sign-in')
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    await shoot('2-home')
    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
    await shoot('2-empty')

    await page.getByRole('link', { name: 'Create instance' }).click()
    await page.getByLabel('Name', { exact: false }).first().fill('web_1')
    await page.getByText('Addresses will use: web-1').waitFor()
    await shoot('3-create')
    await page.getByRole('button', { name: 'Create', exact: true }).click()

    // Nobody reloads the page: what changes is told to it.
    await page.getByRole('heading', { name: 'web_1' }).waitFor()
    await markDocument(page)
    await becomes(page, 'Running')
    await shoot('4-running')

    await page.getByRole('button', { name: 'Terminal', exact: true }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('echo $((6*7))\n')
    await terminalShows(page, '42')
    await shoot('5-terminal')
    await isSameDocument(page)

    await page.reload()
    await page.getByText('Connected', { exact: true }).waitFor()
    await terminalShows(page, '42')
    await page.keyboard.type('echo still-$((6*7))\n')
    await terminalShows(page, 'still-42')
    await shoot('6-terminal-after-reload')

    await page.getByRole('button', { name: 'New terminal', exact: true }).click()
    await page.getByRole('button', { name: 't2', exact: true }).and(page.locator('[aria-current=true]')).waitFor()
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('echo second-$((6*7))\n')
    await terminalShows(page, 'second-42')
    await shoot('6-terminals')
    await page.getByRole('button', { name: 'Close terminal t2' }).click()
    const closing = page.getByRole('dialog', { name: 'Close terminal “t2”?' })
    await closing.getByRole('button', { name: 'Close terminal', exact: true }).click()
    await page.getByRole('button', { name: 't2', exact: true }).waitFor({ state: 'detached' })
    await terminalShows(page, 'still-42')

    await page.getByRole('tab', { name: 'Overview' }).click()
    await stopInstance(page, 'web_1')
    await becomes(page, 'Stopped')
    await shoot('7-stopped')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await becomes(page, 'Running')

    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'web_1' }) })
    await row.getByText('Running', { exact: true }).waitFor()
    await shoot('8-list')
    await row.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete web_1?' })
    await dialog.getByText('Kept: everything in /userhome.').waitFor()
    await shoot('9-delete')
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
  })
})

test('the sign-in page speaks Chinese to whoever reads Chinese', async () => {
  await inBrowser('chinese', { locale: 'zh-CN' }, async (page, shoot) => {
    await page.goto(site.url)
    await page.getByRole('heading', { name: '登录 Berth' }).waitFor()
    await page.getByRole('button', { name: '登录', exact: true }).waitFor()
    await page.locator('html[lang=zh-CN]').waitFor()
    await shoot('1-sign-in')
    // And back again, by the switch.
    await page.getByText('EN', { exact: true }).click()
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  })
})

test('a wrong password is refused with a sentence', async () => {
  await inBrowser('wrong-password', { locale: 'en-GB' }, async (page, shoot) => {
    await page.goto(site.url)
    await page.getByLabel('User name').fill(site.user)
    await page.getByLabel('Password', { exact: true }).fill('a guess')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').filter({ hasText: 'User name or password is wrong' }).waitFor()
    await shoot('1-refused')
  })
})


test('files that a changing network drops are asked for again', async () => {
  await inBrowser('dropped', { locale: 'en-GB', gatewayGoes: true }, async (page) => {
    // Each of these once: the first page and its words, a page that is fetched when it is opened, and the words of that.
    const dropped = new Set()
    await page.route(/\/assets\/(first|rest|instances)-[^/]*\.js$/, (route) => {
      const url = route.request().url()
      if (dropped.has(url)) return route.continue()
      dropped.add(url)
      return route.abort('failed')
    })
    await signIn(page)
    await page.getByRole('link', { name: 'Instances', exact: true }).click()
    await page.getByRole('heading', { name: 'Instances', level: 1 }).waitFor()
    assert(dropped.size >= 4, `dropped only ${[...dropped].join(', ')}`)
  })
})
