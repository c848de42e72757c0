// The first ten minutes of somebody who has never seen Berth, in Chinese and in English: an instance, JupyterLab in
// it, the way to it by SSH, an image of it, a job, and their end.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'

import { APP_LIMIT_MS, inBrowser, site } from './browser.mjs'

/** What the console says, in its own words of that language. */
function words(language) {
  const folder = new URL(`../../web/src/i18n/${language}/`, import.meta.url)
  const read = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8'))
  const names = ['common', 'create', 'images', 'instances', 'jobs', 'session', 'ssh', 'streams']
  return Object.fromEntries(names.map((name) => [name, read(name)]))
}

/** What the button of the tasks tray is called, however many there are. */
function trayLabel(say) {
  const names = Object.entries(say.common.tasks).filter(([key]) => key.startsWith('open'))
  return new RegExp(names.map(([, name]) => name.replace('{{count}}', '\\d+')).join('|'))
}

for (const language of ['zh-CN', 'en']) {
  test(`the first ten minutes: ${language}`, async () => {
    const say = words(language)
    const name = language === 'en' ? 'first_en' : 'first_zh'
    const [image, job] = [name.replace('_', '-'), `${name}_job`]
    const button = (page, text) => page.getByRole('button', { name: text, exact: true })
    const place = (page, key) => page.getByRole('link', { name: say.common.place[key], exact: true })
    await inBrowser(`story-${language}`, { locale: language }, async (page, shoot) => {
      await page.goto(site.url)
      await page.getByLabel(say.session.sign_in.user).fill(site.user)
      await page.getByLabel(say.session.sign_in.password, { exact: true }).fill(site.password)
      await button(page, say.session.sign_in.submit).click()
      await place(page, 'home').waitFor()
      await shoot('1-home')

      await page.getByRole('link', { name: say.instances.create }).click()
      await page.getByLabel(say.create.name.label).first().fill(name)
      await page.getByLabel(say.create.image.label).fill('localhost/berth/lab:latest')
      await shoot('2-create')
      await button(page, say.create.submit).click()
      await page.getByRole('heading', { name }).waitFor()
      const state = page.locator('[aria-live=polite]').first()
      await state.getByText(say.instances.state.running, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
      await shoot('3-running')

      await page.getByRole('tab', { name: say.instances.tab.lab, exact: true }).click()
      await page.locator('iframe').waitFor({ timeout: APP_LIMIT_MS })
      const launcher = page.frameLocator('iframe').locator('.jp-Launcher').first()
      await launcher.waitFor({ timeout: APP_LIMIT_MS })
      await shoot('4-lab')

      await page.getByRole('tab', { name: say.instances.tab.ssh, exact: true }).click()
      await page
        .getByText(`${site.user}+${name.replace('_', '-')}@`, { exact: false })
        .first()
        .waitFor()
      const login = encodeURIComponent(`${site.user}+${name.replace('_', '-')}@`)
      for (const [editor, address] of [
        ['vscode', new RegExp(`^vscode://vscode-remote/ssh-remote\\+${login}.+/userhome$`)],
        ['cursor', new RegExp(`^cursor://vscode-remote/ssh-remote\\+${login}.+/userhome$`)],
        ['jetbrains', /^jetbrains-gateway:\/\/connect#type=ssh&host=.+&port=\d+&user=.+&projectPath=%2Fuserhome/],
      ]) {
        const link = page.getByRole('link', { name: say.ssh.editors[editor], exact: true })
        assert.match(await link.getAttribute('href'), address)
      }
      const { fingerprint } = await page.evaluate(async () => (await fetch('/api/v1/ssh')).json())
      await page.getByText(fingerprint, { exact: true }).waitFor()
      await shoot('5-ssh')

      await page.getByRole('tab', { name: say.instances.tab.logs, exact: true }).click()
      await page.getByRole('textbox', { name: say.streams.logs.find }).waitFor()
      await shoot('6-logs')

      await button(page, say.instances.action.save).click()
      const saving = page.getByRole('dialog')
      await saving.getByText('/userhome', { exact: false }).first().waitFor()
      await saving.getByLabel(say.images.save.name).fill(image)
      await saving.getByLabel(say.images.save.tag).fill('v1')
      await shoot('7-save')
      await button(saving, say.images.save.submit).click()
      const row = page.getByRole('row').filter({ hasText: `${image}:v1` })
      await row.waitFor()
      await page.getByRole('button', { name: trayLabel(say) }).click()
      const act = page.getByRole('article', { name: `${image}:v1`, exact: true })
      await act.getByText(say.images.state.saving).or(act.getByText(say.images.state.ready)).first().waitFor()
      await shoot('8-saving')
      await act.getByRole('link', { name: `${image}:v1` }).click()
      await act.waitFor({ state: 'hidden' })
      await row.getByText(say.images.state.ready, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
      await shoot('8-saved')

      await place(page, 'instances').click()
      await page.getByRole('link', { name, exact: true }).click()
      await page.getByText(`${image}:v1`).first().waitFor()
      await button(page, say.instances.action.stop).click()
      const stopping = page.getByRole('dialog')
      await stopping.getByText(say.instances.ask.files_stay).waitFor()
      await button(stopping, say.instances.action.stop).click()
      await state.getByText(say.instances.state.stopped, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })

      await place(page, 'images').click()
      await button(row, say.images.use_in_job).click()
      await page.getByRole('textbox', { name: say.jobs.new.name, exact: true }).fill(job)
      const command = page.getByRole('textbox', { name: say.jobs.new.command, exact: true })
      await command.fill('echo the answer is $((6*7))')
      await page.getByText(say.jobs.new.verdict_starts).waitFor()
      await shoot('9-job')
      await button(page, say.jobs.new.submit).click()
      await page.getByRole('heading', { name: job }).waitFor()
      await state.getByText(say.jobs.state.succeeded, { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
      await shoot('10-job-done')
      await page.getByRole('tab', { name: say.jobs.tab.logs, exact: true }).click()
      await page.getByText('the answer is 42').waitFor()
      await shoot('11-job-log')
      await place(page, 'jobs').click()
      await page.getByRole('row').filter({ hasText: job }).getByText(say.jobs.state.succeeded).waitFor()
      await shoot('12-jobs')

      await place(page, 'home').click()
      await page
        .getByRole('article', { name })
        .getByText(say.instances.state.stopped, { exact: true })
        .waitFor()
      await shoot('13-home')
    })
  })
}
