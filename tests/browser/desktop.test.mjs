// The desktop in the console: it is shown, and the mouse moves on it.

import assert from 'node:assert/strict'
import test from 'node:test'

import { APP_LIMIT_MS, inBrowser, signal, signalled, signIn, site } from './browser.mjs'

/** What the screen shows; two texts that differ are two pictures. */
function picture(page) {
  return page.locator('canvas').evaluate((canvas) => canvas.toDataURL())
}

test('the mouse moves on the desktop', async () => {
  await inBrowser('desktop', { locale: 'en-GB' }, async (page, shoot) => {
    await signIn(page)
    await page.goto(`${site.url}/instances/screen/desktop`)
    await page.getByText('Connected', { exact: true }).waitFor({ timeout: APP_LIMIT_MS })
    const screen = page.getByRole('application', { name: 'Desktop of screen' }).locator('canvas')
    // The desktop takes the size of the window before anything is measured on it.
    await page.waitForFunction(() => {
      const canvas = document.querySelector('canvas')
      return canvas !== null && canvas.width === canvas.clientWidth && canvas.width !== 1440
    })
    // Then it is painted: a screen without a desktop on it is black, but for the pointer.
    await page.waitForFunction(
      () => {
        const canvas = document.querySelector('canvas')
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
        const pixels = new Uint32Array(data.buffer)
        return pixels.filter((pixel) => (pixel & 0xffffff) !== 0).length > pixels.length / 4
      },
      null,
      { timeout: APP_LIMIT_MS },
    )
    const box = await screen.boundingBox()
    const x = Math.round(box.width / 2)
    const y = Math.round(box.height / 2)
    await shoot('1-desktop')

    const before = await picture(page)
    await screen.click({ button: 'right', position: { x, y } })
    await page.waitForFunction(
      (before) => document.querySelector('canvas').toDataURL() !== before,
      before,
      { timeout: APP_LIMIT_MS },
    )
    await shoot('2-menu')
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'Clipboard of the desktop' }).click()
    await page.getByRole('textbox', { name: 'Clipboard of the desktop' }).fill('你好')
    await shoot('3-clipboard')
    await page.getByRole('button', { name: 'Send to the desktop' }).click()

    await screen.hover({ position: { x: x - 100, y: y - 50 } })
    await screen.hover({ position: { x, y } })
    assert.equal(await page.getByText('Connected', { exact: true }).count(), 1)
    signal('pointer', `${x} ${y}`)
    // The browser sends a movement a moment later, so it stays until the screen has it.
    await signalled('pointer-is-there')
  })
})
