// Job files from elsewhere: what they become is shown beside them; a job is confirmed where the site wants it, and cloned.

import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import test from 'node:test'

import { APP_LIMIT_MS, ask, eventually, inBrowser, signIn, site } from './browser.mjs'

const file = (name) => fileURLToPath(new URL(`../../gateway/jobfile/tests/files/${name}`, import.meta.url))

const FORMATS = {
  'OpenPAI v1 (JSON)': file('hello-world.json'),
  'OpenPAI v2 (YAML)': file('protocol-v2.yaml'),
  'DLC parameters': file('sample_job.params'),
  Determined: {
    name: 'shell.yaml',
    mimeType: 'application/yaml',
    buffer: Buffer.from('description: look around\nresources:\n  slots: 1\n  agent_label: rtx3090\n'),
  },
}

const importing = (page, from) => page.locator('input[type=file]').setInputFiles(from)

test('files of every format are imported, with what they become beside them', async () => {
  await inBrowser('import', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page)
    for (const [format, from] of Object.entries(FORMATS)) {
      await page.goto(`${site.url}/jobs/new`)
      await page.getByRole('button', { name: 'Import' }).waitFor()
      await importing(page, from)
      await page.getByText(format, { exact: true }).waitFor()
      await page.getByRole('textbox', { name: 'The file as it is' }).waitFor()
      const became = page.getByRole('textbox', { name: 'The same as Berth’s own' })
      await became.getByText('berth:').first().waitFor()
      await became.scrollIntoViewIfNeeded()
      await shoot(format.replaceAll(/[^A-Za-z0-9]+/g, '-'))
    }
    // Our own goes into the form as it is.
    await page.goto(`${site.url}/jobs/new`)
    await page.getByRole('button', { name: 'Import' }).waitFor()
    await importing(page, file('berth.yaml'))
    await page.getByText(/more settings? in professional mode/).waitFor()
    await page.getByRole('switch', { name: 'Professional mode' }).press('Space')
    await page.getByRole('textbox', { name: 'Description' }).waitFor()
    await shoot('berth-yaml')
  })
})

test('a job is confirmed where the site always asks, and cloned with its changes shown', async () => {
  await inBrowser('clone', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page)
    await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    await ask(page, 'PATCH', '/site', { confirm_always: true })
    // Two that write more than the console shows at once.
    const file = 'berth: 1\nname: long_log\nimage: localhost/berth/base:latest\ncommand: seq 1 9000\n'
    await ask(page, 'POST', '/jobs', { file })
    const command = ['sh', '-c', 'seq 1 9000; sleep infinity']
    await ask(page, 'POST', '/instances', { name: 'long_log', cpus: 0.5, memory_bytes: 2 ** 27, command })
    // The page knows that the site always asks once it has read the site. The page before may request the site too.
    await page.goto('about:blank')
    const knows = page.waitForResponse((answer) => answer.url().endsWith('/api/v1/site') && answer.ok())
    await Promise.all([knows, page.goto(`${site.url}/jobs/new`)])
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('first_try')
    await page.getByRole('textbox', { name: 'Command', exact: true }).fill('echo one; echo two; echo three')
    // Where the site has several places for it, it says which.
    await page.getByRole('combobox', { name: 'Cluster', exact: true }).click()
    await page.getByRole('option', { name: 'annex' }).click()
    await page.getByText('--cluster annex').first().waitFor()
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    const asked = page.getByRole('dialog')
    await asked.getByText('first_try', { exact: false }).first().waitFor()
    await shoot('1-confirm')
    // Escape is no.
    await page.keyboard.press('Escape')
    await asked.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    await asked.getByRole('button', { name: 'Submit', exact: true }).click()
    await page.getByRole('heading', { name: 'first_try' }).waitFor()
    const state = page.locator('[aria-live=polite]').first()
    await state.getByText('Succeeded', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })

    await page.goto(`${site.url}/jobs`)
    await page.getByRole('row').filter({ hasText: 'first_try' }).getByRole('cell', { name: 'annex' }).waitFor()
    await page.getByRole('link', { name: 'first_try' }).click()

    // A link to a line shows that line.
    await page.getByRole('tab', { name: 'Logs' }).click()
    await page.getByRole('link', { name: 'Line 2', exact: true }).click()
    await page.waitForURL(/line=2/)
    await page.reload()
    await page.locator('[data-chosen]').getByText('two').waitFor()
    await shoot('2-line')

    for (const place of ['jobs', 'instances']) {
      await page.goto(`${site.url}/${place}/long_log/logs?line=1234`)
      await page.locator('[data-chosen][data-line="1234"]').getByText('1234', { exact: true }).nth(1).waitFor()
      await page.getByText('Lines 501 to 2500').waitFor()
      await shoot(`2-line-of-long-log-of-${place}`)
      await page.getByRole('button', { name: 'Later lines' }).click()
      await page.locator('[data-chosen][data-line="2501"]').waitFor()
      await page.getByRole('button', { name: 'Back to the end' }).click()
      await page.getByText('Only the last 5000 lines are shown.', { exact: false }).waitFor()
      // Above what is shown.
      await page.getByRole('textbox', { name: 'Find (regular expression)' }).fill('123')
      const everywhere = page.getByRole('link', { name: 'All lines with this text' })
      const [all] = await Promise.all([page.waitForEvent('popup'), everywhere.click()])
      await all.getByText(/\b123\b[^]*\b1239\b/).waitFor()
      await all.close()
      await page.getByRole('button', { name: 'Line numbers' }).click()
      await page.locator('[data-chosen][data-line="9000"]').waitFor()
    }
    await page.goto(`${site.url}/jobs/first_try`)

    await page.getByRole('link', { name: 'Clone' }).or(page.getByRole('button', { name: 'Clone' })).first().click()
    await page.getByText('Changed against first_try').scrollIntoViewIfNeeded()
    await page.getByRole('textbox', { name: 'The file of first_try' }).waitFor()
    await shoot('3-clone')
    await ask(page, 'PATCH', '/site', { confirm_always: false })
    await page.reload()
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    await page.getByRole('heading', { name: /first_try.*2/ }).waitFor()
    await page.getByText('annex', { exact: true }).first().waitFor()
  })
})

test('a name is composed as input methods do it, and their Enter submits nothing', async () => {
  await inBrowser('composed', { locale: 'zh-CN', refusals: true }, async (page) => {
    await signIn(page)
    await page.goto(`${site.url}/jobs/new`)
    const name = page.getByRole('textbox', { name: '任务名称', exact: true })
    await name.focus()
    const typing = await page.context().newCDPSession(page)
    await typing.send('Input.imeSetComposition', { text: 'xunlian', selectionStart: 7, selectionEnd: 7 })
    const enter = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 229 }
    await typing.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...enter })
    await typing.send('Input.insertText', { text: '训练' })
    await typing.send('Input.dispatchKeyEvent', { type: 'keyUp', ...enter })
    await page.getByText('name: 训练').first().waitFor()
    await eventually(() => name.inputValue(), '训练', { what: 'the name of the job' })
    assert.equal(new URL(page.url()).pathname, '/jobs/new')
    const { items } = await ask(page, 'GET', '/jobs')
    assert.deepEqual(items.filter((job) => /训练|xunlian/.test(job.name)), [])
  })
})

test('an instance is a form or a file, with the place where it is to be', async () => {
  await inBrowser('instance-file', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/new`)
    await page.getByLabel('Name', { exact: false }).first().fill('by_form')
    await page.getByRole('combobox', { name: 'Cluster', exact: true }).click()
    await page.getByRole('option', { name: 'annex' }).click()
    await page.getByRole('combobox', { name: 'Pool', exact: true }).click()
    await page.getByRole('option', { name: 'night' }).click()
    await page.getByText('YAML / JSON', { exact: true }).click()
    const text = page.getByRole('textbox', { name: 'Instance file' })
    await text.getByText('by_form').waitFor()
    await text.getByText('night').waitFor()
    await shoot('1-text')

    // A mistake has its line, and keeps it from being sent.
    const buffer = (lines) => ({ name: 'spec.yaml', mimeType: 'application/yaml', buffer: Buffer.from(lines) })
    await importing(page, buffer('name: by_file\ncpus: many\n'))
    await page.getByText('The form comes back once the file has no mistakes.').waitFor()
    const create = page.getByRole('button', { name: 'Create', exact: true })
    await create.hover()
    await page.getByRole('tooltip', { name: 'The file has mistakes.' }).waitFor()
    await shoot('2-mistake')

    await importing(page, buffer('name: by_file\ncpus: 0.5\nmemory: 128M\ncluster: annex\nenv:\n  SEED: 7\n'))
    await page.getByText('Form', { exact: true }).click()
    await page.getByRole('textbox', { name: 'Name', exact: false }).first().waitFor()
    await page.getByText('1 more setting in professional mode').waitFor()
    await shoot('3-form')
    await create.click()
    await page.getByRole('heading', { name: 'by_file' }).waitFor()
    await page.getByRole('tab', { name: 'Spec' }).click()
    await page.getByText('cluster: annex').first().waitFor()
    await shoot('4-spec')

    // A folder that is shown is where its storage is.
    await page.getByRole('link', { name: 'Instances' }).click()
    await page.getByRole('button', { name: 'TensorBoard from a folder' }).click()
    const dialog = page.getByRole('dialog', { name: 'TensorBoard from a folder' })
    await dialog.getByRole('combobox', { name: 'Cluster', exact: true }).click()
    await page.getByRole('option', { name: 'annex' }).click()
    await dialog.getByText('Show as CLI / API').click()
    await dialog.getByText('berth tensorboard /userhome --cluster annex').waitFor()
    await shoot('5-board')
    await dialog.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('heading', { name: 'tensorboard' }).waitFor()
    await page.getByRole('tab', { name: 'Spec' }).click()
    await page.getByText('cluster: annex').first().waitFor()
  })
})
