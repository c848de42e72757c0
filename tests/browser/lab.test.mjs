// JupyterLab in the console: from the first click to the output of a cell.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, eventually, framed, inBrowser, runCell, signIn, site } from './browser.mjs'

test('a cell runs in JupyterLab', async () => {
  await inBrowser('lab', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances`)
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'notes' }) })
    await row.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Lab (JupyterLab)' }).click()
    const lab = await framed(page, 'JupyterLab of notes')
    await lab.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: APP_LIMIT_MS })
    const line = 'import os; print(6 * 7, "from a cell in", os.getcwd())'
    const output = await runCell(page, lab, line, '42 from a cell in /userhome')
    await shoot('1-cell')

    // The files begin at home, and all others are to be had from there.
    const crumbs = lab.locator('.jp-FileBrowser-crumbs')
    await crumbs.getByText('userhome').waitFor()
    await crumbs.locator('.jp-BreadCrumbs-home').click()
    for (const folder of ['mnt', 'opt', 'userhome']) {
      await lab.getByRole('listitem', { name: `Name: ${folder}`, exact: false }).first().waitFor()
    }
    await shoot('2-all-files')
    await lab.getByRole('listitem', { name: 'Name: userhome', exact: false }).first().dblclick()
    await crumbs.getByText('userhome').waitFor()
    await page.keyboard.press('Control+Shift+L')
    await lab.locator('.jp-LauncherCard').filter({ hasText: 'Terminal', visible: true }).click()
    await lab.locator('.jp-Terminal .xterm-screen').click({ timeout: APP_LIMIT_MS })
    await page.keyboard.type('pwd > /userhome/where-the-terminal-is\n')
    const written = lab.getByRole('listitem', { name: 'Name: where-the-terminal-is', exact: false })
    await written.waitFor({ timeout: APP_LIMIT_MS })
    await lab.getByRole('tab', { name: 'Untitled.ipynb' }).click()

    // A look at another tab, and back: the page in the frame is the same one.
    const document = page.frame({ url: /lab--notes--admin/ })
    assert(document, 'JupyterLab is not at an address of its own')
    await document.evaluate(() => {
      globalThis.sameDocument = true
    })
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Specification' }).waitFor()
    await page.getByRole('tab', { name: 'Lab', exact: true }).click()
    await output.waitFor()
    const isWide = async () => ((await lab.locator('.jp-Notebook').boundingBox())?.width ?? 0) > 500
    await eventually(isWide, true, { what: 'the notebook has no room' })
    assert.equal(await document.evaluate(() => globalThis.sameDocument), true, 'the frame was reloaded')

    // And in a tab of its own, where nothing of the console is around it.
    const link = page.getByRole('link', { name: 'Open in a new tab' })
    const [own] = await Promise.all([page.context().waitForEvent('page'), link.click()])
    await own.waitForURL(/^http:\/\/lab--notes--admin\./, { timeout: APP_LIMIT_MS })
    await own.locator('#jp-top-panel').waitFor({ timeout: APP_LIMIT_MS })
    assert(!own.url().includes('ticket'), `the address still signs in: ${own.url()}`)
    assert.equal(await own.evaluate(() => globalThis.opener), null, 'it can reach the console’s window')
    await own.screenshot()
    await own.close()
  })
})

test('whoever is not signed in is led through the console, and nowhere else', async () => {
  await inBrowser('enter', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    const { port } = new URL(site.url)
    await page.goto(`http://lab--notes--admin.localhost:${port}/lab/tree`)
    await page.waitForURL(`http://lab--notes--admin.berth.localhost:${port}/lab/tree`, { timeout: APP_LIMIT_MS })
    await page.locator('#jp-top-panel').waitFor({ timeout: APP_LIMIT_MS })

    for (const host of ['lab--notes--somebody', 'evil.example', 'lab--notes--admin.evil']) {
      await page.goto(`${site.url}/enter?host=${host}&next=//evil.example/`)
      await page.getByText('There is nothing of yours at this address.').waitFor()
      assert.equal(new URL(page.url()).origin, new URL(site.url).origin)
    }
    await shoot('1-nothing-there')
  })
})

test('a browser that keeps nothing for framed pages is led to a tab of its own', async () => {
  for (const [locale, sentence, button] of [
    ['en-GB', 'This browser keeps nothing for apps in a frame', 'Open in a new tab'],
    ['zh-CN', '此浏览器不允许框架中的应用保存数据', '在新标签页中打开'],
  ]) {
    await inBrowser(`no-storage-${locale}`, { locale }, async (page, shoot) => {
      // As for a browser that does not find the console's better name.
      const url = site.url.replace('berth.', '')
      await page.context().addCookies([{ name: 'berth-stays', value: '1', url }])
      await signIn(page, { url })
      await page.goto(`${url}/instances/notes/lab`)
      const lab = page.frameLocator('iframe')
      await lab.getByText(sentence, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
      await shoot('1-sentence')
      const link = lab.getByRole('link', { name: button })
      const [own] = await Promise.all([page.context().waitForEvent('page'), link.click()])
      // A workspace of its own: this one shows what was open before.
      await own.locator('#jp-top-panel').waitFor({ timeout: APP_LIMIT_MS })
      await own.goto(new URL(`/lab/workspaces/${locale}`, own.url()).href)
      const card = own.locator('.jp-LauncherCard[data-category=Notebook]').first()
      await card.click({ timeout: APP_LIMIT_MS })
      await runCell(own, own, 'print(6 * 7, "in a tab")', '42 in a tab')
      await own.close()
    })
  }
})
