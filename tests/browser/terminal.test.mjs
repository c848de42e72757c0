// A terminal outlives the gateway: `kill -9`, and after a reload the same shell is there.

import test from 'node:test'

import { inBrowser, signal, signalled, signIn, site, terminalShows } from './browser.mjs'

test('a shell is the same after the gateway was killed', async () => {
  await inBrowser('terminal', { locale: 'en-GB', gatewayGoes: true }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/shell/terminal`)
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.keyboard.type('kept=here; echo before-$((6*7))\n')
    await terminalShows(page, 'before-42')
    await shoot('1-before')

    signal('kill-the-gateway')
    await signalled('gateway-is-back')
    await page.reload()
    await page.getByText('Connected', { exact: true }).waitFor()
    await terminalShows(page, 'before-42')
    await page.keyboard.type('echo $kept-after\n')
    await terminalShows(page, 'here-after')
    await shoot('2-after')
  })
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
    await page.keyboard.type("printf '\\033[?2004h'; cat -v\n")
    await page.locator('.xterm-helper-textarea').evaluate((field) => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', 'rm -rf 粘贴')
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    })
    await page.keyboard.press('Enter')
    await terminalShows(page, '^[[200~rm -rf M-gM-2M-^XM-hM-4M-4^[[201~')
    await page.keyboard.press('Control+C')

    await page.keyboard.type('clear; stty size\n')
    const size = () =>
      page.evaluate(() => {
        const rows = [...document.querySelectorAll('.xterm-rows > div')].map((row) => row.textContent.trim())
        return rows.find((row) => /^\d+ \d+$/.test(row))
      })
    await page.waitForFunction(() =>
      [...document.querySelectorAll('.xterm-rows > div')].some((row) => /^\d+ \d+$/.test(row.textContent.trim())),
    )
    const before = await size()
    await page.setViewportSize({ width: 1000, height: 600 })
    await page.keyboard.type('clear; until [ "$(stty size)" != "' + before + '" ]; do sleep 0.1; done; echo another size\n')
    await terminalShows(page, 'another size')

    await page.keyboard.type('yes flood\n')
    await terminalShows(page, 'flood')
    await page.keyboard.press('Control+C')
    await page.keyboard.type('clear; echo ended-$((6*7))\n')
    await terminalShows(page, 'ended-42')
    await shoot('2-after-a-flood')
  })
})
