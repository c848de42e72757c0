// VS Code in the console: a file is edited and saved, and its terminal works.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, framed, inBrowser, signIn, site } from './browser.mjs'

test('a file is edited in VS Code', async () => {
  await inBrowser('ide', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/code/ide`)
    const ide = await framed(page, 'VS Code of code')
    await ide.getByRole('treeitem', { name: 'memo' }).click({ timeout: APP_LIMIT_MS })
    await ide.getByRole('treeitem', { name: 'notes.txt' }).dblclick()
    await ide.locator('.monaco-editor .view-line').getByText('first').click()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('written in the browser\n')
    await ide.locator('.monaco-editor .view-line').getByText('written in the browser').waitFor()
    await page.keyboard.press('Control+S')
    await ide.locator('.tab.active:not(.dirty)').getByText('notes.txt').waitFor()
    await shoot('1-saved')

    await page.keyboard.press('Control+Backquote')
    await ide.locator('.terminal.xterm .xterm-screen').click({ timeout: APP_LIMIT_MS })
    // The tab says that it is saved a moment before the file is.
    await page.keyboard.type('until grep -q browser /userhome/memo/notes.txt; do sleep 0.1; done; ')
    await page.keyboard.type('echo $((6*7)) > /userhome/memo/from-terminal\n')
    await ide.getByRole('treeitem', { name: 'from-terminal' }).waitFor({ timeout: APP_LIMIT_MS })
    await shoot('2-terminal')

    // A preview is a page in a page, with a service worker of its own.
    await ide.getByRole('treeitem', { name: 'README.md' }).dblclick()
    await ide.locator('.tab.active').getByText('README.md').waitFor()
    await ide.locator('.monaco-editor .view-line').getByText('A heading').click()
    await page.keyboard.press('Control+Shift+V')
    const preview = ide.frameLocator('iframe.webview.ready').frameLocator('iframe#active-frame')
    await preview.getByRole('heading', { name: 'A heading in the preview' }).waitFor({ timeout: APP_LIMIT_MS })
    await shoot('3-preview')
    assert.equal(await ide.locator('.part.auxiliarybar').isVisible(), false, 'the side bar of the chat is shown')
  })
})
