// An app's own address while its instance is stopped, after it was deleted, and after signing out.

import test from 'node:test'

import { APP_LIMIT_MS, eventually, inBrowser, signIn, signOut, site, stopInstance } from './browser.mjs'

/** Chooses a language in the console, and waits until the account has it. */
async function choose(page, language) {
  const kept = page.waitForResponse((answer) => answer.url().endsWith('/me/language') && answer.ok())
  await Promise.all([kept, page.getByText(language, { exact: true }).click()])
}

test('an address says how its instance is, and starts it', async () => {
  await inBrowser('address', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    const ide = `http://ide--code--admin.berth.localhost:${new URL(site.url).port}/`
    const own = await page.context().newPage()
    const workbench = own.locator('.monaco-workbench')
    await own.goto(ide)
    await workbench.waitFor({ timeout: APP_LIMIT_MS })

    await page.goto(`${site.url}/instances/code`)
    await stopInstance(page, 'code')
    await page.locator('[aria-live=polite]').getByText('Stopped', { exact: true }).waitFor()
    await own.goto(ide)
    // The gateway caches the visitor's account for a second, so the page changes soon, not at once.
    const says = (text) =>
      eventually(
        async () => {
          await own.reload()
          return own.getByText(text, { exact: true }).isVisible()
        },
        true,
        { what: `the page does not say ${text}` },
      )
    await says('The instance is stopped')
    await own.screenshot({ path: `${process.env.SCREENSHOTS}/address-1-stopped.png` })
    // The language that was chosen in the console is stronger than the browser's.
    await choose(page, '中')
    await page.getByRole('button', { name: '启动', exact: true }).first().waitFor()
    await says('实例已停止')
    await own.screenshot({ path: `${process.env.SCREENSHOTS}/address-1-stopped-zh.png` })
    await choose(page, 'EN')
    await page.getByRole('button', { name: 'Start', exact: true }).first().waitFor()
    await says('The instance is stopped')
    await own.getByRole('button', { name: 'Start the instance' }).click()
    // It opens by itself, at the address that was asked for.
    await workbench.waitFor({ timeout: APP_LIMIT_MS })

    // A page that is open when its visitor signs out leads to the sign-in, and back.
    await signOut(page)
    await own.reload()
    await own.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
    await own.getByLabel('User name').fill(site.user)
    await own.getByLabel('Password', { exact: true }).fill(site.password)
    await own.getByRole('button', { name: 'Sign in', exact: true }).click()
    await workbench.waitFor({ timeout: APP_LIMIT_MS })

    await page.goto(`${site.url}/instances/code`)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor()
    await own.reload()
    await own.getByText('There is nothing of yours at this address.').waitFor()
    await shoot('2-deleted')
    await own.close()
  })
})
