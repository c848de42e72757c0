// A job that failed says why, and what its task left can be opened, with as many GPUs as one wants.

import test from 'node:test'

import { APP_LIMIT_MS, inBrowser, isSameDocument, markDocument, signIn, site } from './browser.mjs'

test('a failed job shows its last lines, and its task is opened from there', async () => {
  await inBrowser('kept', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/jobs/fails`)
    await page.getByText('no such file: weights.pt', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'All of its output' }).waitFor()
    await page.getByText('Files of its tasks kept until').waitFor()
    await shoot('1-why')
    await markDocument(page)

    const row = page.getByRole('row').filter({ hasText: 'main/0' })
    await row.getByRole('button', { name: 'Start', exact: true }).click()
    const asking = page.getByRole('dialog', { name: /^Start .* to look around$/ })
    await asking.getByText('1', { exact: true }).click()
    await shoot('2-gpus')
    await asking.getByRole('button', { name: 'Start', exact: true }).click()
    await asking.waitFor({ state: 'detached' })
    await row.getByText('Running', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    await shoot('3-opened')

    await row.getByRole('link').first().click()
    await page.getByText('A task of the job').waitFor()
    const remove = page.getByRole('button', { name: 'Delete', exact: true })
    await remove.hover()
    await page.getByText('It is a task of a job: use its job.').waitFor()
    await shoot('4-task')
    await page.getByText('Its GPUs', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'fails', exact: true }).click()
    await page.getByRole('heading', { name: 'fails', level: 1 }).waitFor()
    await isSameDocument(page)
  })
})
