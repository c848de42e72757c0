// @vitest-environment happy-dom
import { createServer } from 'node:http'

import { afterEach, expect, test, vi } from 'vitest'
import { type WebSocket as Served, WebSocketServer } from 'ws'

import { eventually } from '../testing/eventually'
import { doubt } from './link'
import { LastingSocket } from './socket'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server that says hello to each who comes, and never closes anything: as far as it is told, all links live. */
async function server() {
  const http = createServer()
  const links: Served[] = []
  new WebSocketServer({ server: http }).on('connection', (link) => {
    links.push(link)
    link.send(Buffer.from(`hello ${links.length}`))
  })
  await new Promise<void>((resolve) => http.listen(0, 'localhost', resolve))
  const address = http.address()
  const port = typeof address === 'object' ? address?.port : undefined
  vi.stubGlobal('location', new URL(`http://localhost:${port}/`))
  closing.push(() => {
    for (const link of links) link.terminate()
    http.close()
    vi.unstubAllGlobals()
  })
  return links
}

function open() {
  const shown: string[] = []
  const socket = new LastingSocket({
    path: () => '/terminal',
    opened: () => shown.push('opened'),
    bytes: (bytes) => shown.push(new TextDecoder().decode(bytes)),
    text: () => undefined,
    lost: () => shown.push('lost'),
    isOver: () => false,
  })
  closing.push(() => socket.close())
  return shown
}

test('a link that died in silence is made anew when the browser has another network', async () => {
  const links = await server()
  const shown = open()
  await eventually(() => expect(shown).toEqual(['opened', 'hello 1']))
  window.dispatchEvent(new Event('online'))
  await eventually(() => expect(shown).toEqual(['opened', 'hello 1', 'lost', 'opened', 'hello 2']))
  // What the old one may still say is nobody's business any more.
  links[0]?.send(Buffer.from('late'))
  links[1]?.send(Buffer.from('typed'))
  await eventually(() => expect(shown.at(-1)).toBe('typed'))
  expect(shown).not.toContain('late')
})

test('one that was heard since another connection was lost stays', async () => {
  const links = await server()
  const shown = open()
  await eventually(() => expect(shown).toEqual(['opened', 'hello 1']))
  doubt(Date.now() - 60_000)
  links[0]?.send(Buffer.from('still here'))
  await eventually(() => expect(shown).toEqual(['opened', 'hello 1', 'still here']))
  expect(links).toHaveLength(1)
  doubt(Date.now() + 1)
  await eventually(() => expect(links).toHaveLength(2))
})
