// JupyterLab in an image that has a Python but no JupyterLab: one button. And in one without a Python: a sentence.

import test from 'node:test'

import { framed, inBrowser, signIn, site } from './browser.mjs'

/** What pip needs, on a machine that is busy with other tests and far from the index. */
const INSTALL_LIMIT_MS = 900_000

test('JupyterLab is installed by one button', async () => {
  await inBrowser('install', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/bare/lab`)
    await page.getByRole('heading', { name: 'JupyterLab is not in this image' }).waitFor()
    await shoot('1-not-in-image')
    await page.getByRole('button', { name: 'Install JupyterLab', exact: true }).click()
    await page.getByRole('heading', { name: 'JupyterLab is being installed' }).waitFor()
    // Lines of its parts begin in the same way.
    const written = page.getByRole('region', { name: 'What JupyterLab wrote' })
    await written.getByText(/Collecting jupyterlab/).first().waitFor({ timeout: INSTALL_LIMIT_MS })
    await shoot('2-installing')
    // It opens by itself.
    await page.locator('iframe[title="JupyterLab of bare"]').waitFor({ timeout: INSTALL_LIMIT_MS })
    const lab = await framed(page, 'JupyterLab of bare')
    await lab.locator('.jp-LauncherCard[data-category=Notebook]').first().click({ timeout: INSTALL_LIMIT_MS })
    await lab.locator('.jp-Notebook .jp-CodeCell .cm-content').first().click({ timeout: INSTALL_LIMIT_MS })
    await lab.getByText('Python 3 (ipykernel) | Idle').waitFor({ timeout: INSTALL_LIMIT_MS })
    await page.keyboard.type('print(6 * 7, "installed")')
    await page.keyboard.press('Shift+Enter')
    await lab.locator('.jp-OutputArea-output').getByText('42 installed').waitFor({ timeout: INSTALL_LIMIT_MS })
    await shoot('3-cell')
  })
})

test('an image without Python says so', async () => {
  for (const [locale, sentence] of [
    ['en-GB', 'The image has no Python, which JupyterLab needs.'],
    ['zh-CN', '镜像中没有 Python，而 JupyterLab 需要它。'],
  ]) {
    await inBrowser(`no-python-${locale}`, { locale }, async (page, shoot) => {
      await signIn(page)
      await page.goto(`${site.url}/instances/empty/lab`)
      await page.getByRole('alert').getByText(sentence).waitFor()
      await shoot('1-sentence')
    })
  }
})
