// A terminal outlives the gateway and its link: after `kill -9`, and after a link that died in silence, the same shell is
// there, without a reload.

import { connect, createServer } from 'node:net'
import test from 'node:test'

import {
  inBrowser,
  isSameDocument,
  markDocument,
  signal,
  signalled,
  signIn,
  site,
  terminalShows,
} from './browser.mjs'

test('a shell is the same after the gateway was killed', async () => {
  await inBrowser('terminal', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/shell/terminal`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('kept=here; echo before-$((6*7))\n')
    await terminalShows(page, 'before-42')
    await shoot('1-before')

    await markDocument(page)
    signal('kill-the-gateway')
    await page.getByText('Connection lost, trying again').waitFor()
    signal('saw-it-lost')
    await signalled('gateway-is-back')
    await page.getByText('Connected', { exact: true }).waitFor()
    await terminalShows(page, 'before-42')
    await page.keyboard.type('echo $kept-after\n')
    await terminalShows(page, 'here-after')
    await isSameDocument(page)
    await shoot('2-after')

    await page.reload()
    await page.getByText('Connected', { exact: true }).waitFor()
    await terminalShows(page, 'here-after')
  })
})

/** A way to the gateway that can fall silent, as one does whose network is gone: nobody is told. */
async function quietWay() {
  const { port } = new URL(site.url)
  const open = new Set()
  const server = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1')
    for (const end of [near, far]) end.on('error', () => undefined)
    near.pipe(far)
    far.pipe(near)
    open.add([near, far])
  })
  await new Promise((resolve) => server.listen(0, resolve))
  return {
    url: site.url.replace(`:${port}`, `:${server.address().port}`),
    /** What is connected now says and hears nothing more. */
    fallSilent: () => {
      for (const [near, far] of open) {
        near.unpipe(far)
        far.unpipe(near)
      }
    },
    close: () => {
      for (const ends of open) for (const end of ends) end.destroy()
      server.close()
    },
  }
}

test('a link that died in silence is noticed, and the shell goes on', async () => {
  const way = await quietWay()
  try {
    await inBrowser('silence', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
      await signIn(page, { url: way.url })
      await page.goto(`${way.url}/instances/shell/terminal`)
      await page.getByText('Connected', { exact: true }).waitFor()
      await page.keyboard.type('clear; still=there; echo first-$((6*7))\n')
      await terminalShows(page, 'first-42')
      await markDocument(page)

      way.fallSilent()
      // The browser has another network now, as with a laptop that was carried elsewhere.
      const connecting = page.waitForEvent('websocket')
      await page.evaluate(() => globalThis.dispatchEvent(new Event('online')))
      await (await connecting).waitForEvent('framereceived')
      await page.getByText('Connected', { exact: true }).waitFor()
      await page.keyboard.type('echo $still-again\n')
      await terminalShows(page, 'there-again')
      await isSameDocument(page)
      await shoot('1-again')
    })
  } finally {
    way.close()
  }
})

test('a terminal takes Chinese, pasted text, another size and Ctrl-C', async () => {
  await inBrowser('typing', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/shell/terminal`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('clear; echo $TERM-$(tput colors)\n')
    await terminalShows(page, 'xterm-256color-256')

    // As an input method does it: what is being composed is not sent, what was chosen is.
    const typing = await page.context().newCDPSession(page)
    await page.keyboard.type('echo ')
    await typing.send('Input.imeSetComposition', { text: 'ni hao', selectionStart: 6, selectionEnd: 6 })
    await typing.send('Input.insertText', { text: '你好，世界' })
    // The terminal takes it up a moment later; people press Enter when they see it.
    await terminalShows(page, '你好，世界', { within: true })
    await page.keyboard.press('Enter')
    await terminalShows(page, '你好，世界')
    await shoot('1-chinese')

    // A program that asks for it is told where pasted text begins and ends.
    await page.keyboard.type("printf '\\033[?2004h'; echo asked; cat -v\n")
    await terminalShows(page, 'asked')
    await page.locator('.xterm-helper-textarea').evaluate((field) => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', 'rm -rf 粘贴')
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    })
    await page.keyboard.press('Enter')
    await terminalShows(page, '^[[200~rm -rf M-gM-2M-^XM-hM-4M-4^[[201~')
    await page.keyboard.press('Control+C')

    await page.keyboard.type('clear; stty size\n')
    const size = await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent.trim())
      return rows.find((row) => /^\d+ \d+$/.test(row))
    })
    const before = await size.jsonValue()
    await page.setViewportSize({ width: 1000, height: 600 })
    await page.keyboard.type('clear; until [ "$(stty size)" != "' + before + '" ]; do sleep 0.1; done; echo another size\n')
    await terminalShows(page, 'another size')

    await page.keyboard.type('yes flood\n')
    await terminalShows(page, 'flood')
    await page.keyboard.press('Control+C')
    await page.keyboard.type('clear; echo ended-$((6*7))\n')
    await terminalShows(page, 'ended-42')
    await shoot('2-after-a-flood')

    // Another one, under a name that says what it is for.
    await page.getByRole('button', { name: 'New terminal with a name' }).click()
    const naming = page.getByRole('dialog', { name: 'New terminal with a name' })
    await naming.getByLabel('Name', { exact: true }).fill('Night shift')
    await naming.getByRole('button', { name: 'Open', exact: true }).click()
    await naming.getByText('Use lower-case letters, digits and hyphens, at most 32 of them.').waitFor()
    await naming.getByLabel('Name', { exact: true }).fill('night-shift')
    await naming.getByRole('button', { name: 'Open', exact: true }).click()
    const named = page.getByRole('group', { name: 'Terminals' }).getByRole('button', { name: 'night-shift', exact: true })
    await named.and(page.locator('[aria-current=true]')).waitFor()
    await naming.waitFor({ state: 'detached' })
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('echo named-$((6*7))\n')
    await terminalShows(page, 'named-42')
    await shoot('3-named')
  })
})
