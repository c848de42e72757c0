// The cluster page of a machine with eight GPUs: a cell for each, who has it, and the largest free block.

import test from 'node:test'

import { counts, eventually, fits, inBrowser, signIn, site } from './browser.mjs'

test('every GPU has a cell that says who has it', async () => {
  await inBrowser('gpus', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/cluster`)
    const cells = page.getByRole('button', { name: /^GPU \d/ })
    await counts(cells, 8)
    const taken = page.getByRole('button', { name: /RTX 3090.*admin/ })
    await counts(taken, 2)
    await counts(page.getByRole('button', { name: /free/ }), 6)
    await shoot('1-cluster')
    // By keyboard: all that is known of a card.
    await taken.first().focus()
    await page.keyboard.press('Enter')
    await page.getByText('admin · train').waitFor()
    await shoot('2-cell')
    await page.keyboard.press('Escape')
    await page.getByText('admin · train').waitFor({ state: 'detached' })

    await page.setViewportSize({ width: 375, height: 740 })
    await page.goto(`${site.url}/cluster`)
    await counts(cells, 8)
    await fits(page)
    await shoot('3-phone')

    // The quota of a model, and one for a while.
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${site.url}/admin/groups`)
    await page.getByRole('button', { name: 'Quota of default' }).click()
    const quota = page.getByRole('dialog', { name: 'Quota of default' })
    await quota.getByLabel('GPUs: NVIDIA GeForce RTX 3090').fill('2')
    await shoot('4-quota')
    await quota.getByRole('button', { name: 'Save' }).click()
    await quota.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Quota of default' }).click()
    await quota.getByText('For a while', { exact: true }).click()
    await quota.getByLabel('GPUs', { exact: true }).fill('6')
    await quota.getByText('Show as CLI / API').click()
    await quota.getByText('berth quota set group default --gpus 6 --for 24h').waitFor()
    await quota.getByRole('button', { name: 'Save' }).click()
    await quota.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Quota of default' }).click()
    await quota.getByText('Raised for a while, until').waitFor()
    const limit = quota.getByLabel('GPUs: NVIDIA GeForce RTX 3090')
    await eventually(() => limit.inputValue(), '2', { what: 'the quota of RTX 3090' })
    await shoot('5-raised')
  })
})
