// The address that `berth open NAME terminal --print` prints: it signs in one browser, once, and asks whoever is signed
// in already.

import assert from 'node:assert/strict'
import test from 'node:test'

import { addPerson, inBrowser, signal, signalled, signIn, site, terminalShows, told } from './browser.mjs'

/** Prints another address. It is good for less than a minute, so a walk prints it when its browser is there. */
async function printed(name) {
  signal(`print-${name}`)
  await signalled(`printed-${name}`)
  return told(`printed-${name}`)
}

async function connected(page) {
  await page.getByText('Connected', { exact: true }).waitFor()
  assert.equal(page.url(), `${site.url}/instances/shell/terminal`, 'the ticket is out of the address')
}

test('a printed address opens the terminal in one browser, once', async () => {
  let first
  let dan
  await inBrowser('ticket', { locale: 'en-GB' }, async (page, shoot) => {
    first = await printed('first')
    await page.goto(first)
    await connected(page)
    await page.keyboard.type('kept=here; echo first-$((6*7))\n')
    await terminalShows(page, 'first-42')
    await shoot('1-terminal')
    dan = await addPerson(page, { name: 'dan' })
  })

  await inBrowser('ticket-again', { locale: 'en-GB' }, async (page, shoot) => {
    await page.goto(first)
    await page.getByRole('heading', { name: 'This link does not sign in' }).waitFor()
    await shoot('1-used')
    await page.getByRole('button', { name: 'Go on without it' }).click()
    await page.getByLabel('User name').waitFor()
  })

  // Another browser finds the same shell, with what it showed.
  await inBrowser('ticket-second', { locale: 'en-GB' }, async (page) => {
    await page.goto(await printed('second'))
    await connected(page)
    await terminalShows(page, 'first-42')
    await page.keyboard.type('echo $kept-again\n')
    await terminalShows(page, 'here-again')
  })

  // Nobody is signed in as somebody else without being asked.
  await inBrowser('ticket-other', { locale: 'en-GB', refusals: true }, async (page, shoot) => {
    await signIn(page, dan)
    await page.getByRole('heading', { name: 'Hello, dan' }).waitFor()
    const stay = page.getByRole('button', { name: 'Stay dan' })
    await page.goto(await printed('third'))
    await page.getByText('You are signed in as dan.', { exact: false }).waitFor()
    await shoot('1-asked')
    await stay.click()
    await page.getByRole('alert').filter({ hasText: 'There is no instance named “shell”' }).waitFor()

    // Staying does not use up the link. It expires soon, so only the steps that need it come before that.
    const fourth = await printed('fourth')
    await page.goto('about:blank')
    await page.goto(fourth)
    await stay.click()
    await stay.waitFor({ state: 'detached' })
    await page.goto('about:blank')
    await page.goto(fourth)
    await page.getByRole('button', { name: 'Sign in with the link' }).click()
    await connected(page)
    await terminalShows(page, 'here-again')
  })
})
