// TensorBoard in the console: of a folder of an instance, and as an instance of its own.

import test from 'node:test'

import { APP_LIMIT_MS, framed, inBrowser, signIn, site } from './browser.mjs'

/** The chart of the one scalar that the run wrote, with its line. */
async function chart(page, name) {
  const board = await framed(page, `TensorBoard of ${name}`)
  const card = board.locator('scalar-card').filter({ hasText: 'loss' }).first()
  await card.waitFor({ timeout: APP_LIMIT_MS })
  await card.locator('line-chart').first().waitFor({ timeout: APP_LIMIT_MS })
}

test('a scalar chart of a folder', async () => {
  await inBrowser('tensorboard', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/train/tensorboard`)
    await page.getByLabel('Folder').fill('userhome/runs')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('Enter the whole path, beginning with /.').waitFor()
    await page.getByLabel('Folder').fill('/userhome/runs')
    await shoot('1-folder')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await chart(page, 'train')
    await shoot('2-chart')

    await page.getByRole('link', { name: 'Instances' }).click()
    await page.getByRole('button', { name: 'TensorBoard from a folder' }).click()
    const dialog = page.getByRole('dialog', { name: 'TensorBoard from a folder' })
    await dialog.getByLabel('Folder').fill('/userhome/runs')
    await shoot('3-dialog')
    await dialog.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('heading', { name: 'tensorboard' }).waitFor()
    await chart(page, 'tensorboard')
    await shoot('4-own-instance')
  })
})
