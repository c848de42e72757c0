// What axe finds on a page, or in a part of it, once nothing moves there.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** Each kind of mistake with where it is; `within` is a CSS selector. */
export async function mistakes(page, within) {
  await page.evaluate(AXE)
  return page.evaluate(
    async ([values, within]) => {
      const { violations } = await globalThis.axe.run(within ?? document, { runOnly: { type: 'tag', values } })
      return violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
      )
    },
    [RULES, within],
  )
}

/** Waits until nothing on the page moves, except what moves forever. */
export function still(page) {
  return page.waitForFunction(() =>
    document
      .getAnimations()
      .every(({ effect, playState }) => playState !== 'running' || effect?.getComputedTiming().endTime === Infinity),
  )
}
