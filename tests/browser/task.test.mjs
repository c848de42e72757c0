// A task of a job: the same tools at the same kind of address as an instance, and its charts when it has ended.

import test from 'node:test'

import { APP_LIMIT_MS, framed, inBrowser, runCell, signIn, site } from './browser.mjs'

test('a cell runs in JupyterLab on a task of a job', async () => {
  await inBrowser('task-lab', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    const { port } = new URL(site.url)
    await page.goto(`http://lab--stays-main-0--admin.berth.localhost:${port}/lab`)
    await page.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: APP_LIMIT_MS })
    await runCell(page, page, 'print(6 * 7, "on a task")', '42 on a task')
    await shoot('1-cell')
  })
})

test('a chart of a job that has ended', async () => {
  await inBrowser('task-chart', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances`)
    await page.getByRole('button', { name: 'TensorBoard from a folder' }).click()
    const dialog = page.getByRole('dialog', { name: 'TensorBoard from a folder' })
    await dialog.getByLabel('Folder').fill('/userhome/runs')
    await dialog.getByRole('button', { name: 'Show', exact: true }).click()
    const board = await framed(page, 'TensorBoard of tensorboard')
    const card = board.locator('scalar-card').filter({ hasText: 'loss' }).first()
    await card.waitFor({ timeout: APP_LIMIT_MS })
    await card.locator('line-chart').first().waitFor({ timeout: APP_LIMIT_MS })
    await shoot('1-chart')
  })
})
