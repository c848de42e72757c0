// Path mode: all apps at one host and port, each below a path of its own, and each works there.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, inBrowser, runCell, signIn, site } from './browser.mjs'

/** Opens a tool as the console's own button does: with an address that signs in once. */
async function open(page, app, wanted = {}) {
  await signIn(page)
  const url = await page.evaluate(
    async ([app, wanted]) => {
      const answer = await fetch(`/api/v1/instances/tools/apps/${app}/open`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(wanted),
      })
      return (await answer.json()).url
    },
    [app, wanted],
  )
  await page.goto(url)
  await page.waitForURL((url) => url.pathname.startsWith(`/admin/tools/${app}/`) && !url.search.includes('ticket'), {
    timeout: APP_LIMIT_MS,
  })
  assert.notEqual(new URL(page.url()).origin, new URL(site.url).origin, 'it is at the console’s origin')
}

test('a cell runs in JupyterLab below a path', async () => {
  await inBrowser('path-lab', { locale: 'en-GB' }, async (page, shoot) => {
    await open(page, 'lab')
    await page.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: APP_LIMIT_MS })
    await runCell(page, page, 'print(6 * 7, "below a path")', '42 below a path')
    await shoot('1-cell')
  })
})

test('a file is edited in VS Code below a path', async () => {
  await inBrowser('path-ide', { locale: 'en-GB' }, async (page, shoot) => {
    await open(page, 'ide')
    await page.getByRole('treeitem', { name: 'notes.txt' }).dblclick({ timeout: APP_LIMIT_MS })
    await page.locator('.monaco-editor .view-line').getByText('first').click()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('written below a path\n')
    await page.locator('.monaco-editor .view-line').getByText('written below a path').waitFor()
    await page.keyboard.press('Control+S')
    await page.locator('.tab.active:not(.dirty)').getByText('notes.txt').waitFor()
    await page.keyboard.press('Control+Backquote')
    await page.locator('.terminal.xterm .xterm-screen').click({ timeout: APP_LIMIT_MS })
    // The tab says that it is saved a moment before the file is.
    await page.keyboard.type('until grep -q path /userhome/notes.txt; do sleep 0.1; done; ')
    await page.keyboard.type('echo $((6*7)) > /userhome/from-terminal\n')
    await page.getByRole('treeitem', { name: 'from-terminal' }).waitFor({ timeout: APP_LIMIT_MS })
    await shoot('1-saved')
  })
})

test('a chart is drawn in TensorBoard below a path', async () => {
  await inBrowser('path-tensorboard', { locale: 'en-GB' }, async (page, shoot) => {
    await open(page, 'tensorboard', { folder: '/userhome/runs' })
    const card = page.locator('scalar-card').filter({ hasText: 'loss' }).first()
    await card.waitFor({ timeout: APP_LIMIT_MS })
    await card.locator('line-chart').first().waitFor({ timeout: APP_LIMIT_MS })
    await shoot('1-chart')
  })
})
