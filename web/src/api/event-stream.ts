// Server-sent events over fetch. The browser's own EventSource hides two things that we must know: the status of a
// refused connection (signed out or merely down?) and the heartbeat comments, by whose absence a dead link is found.

export interface ServerEvent {
  event: string
  data: string
}

/** Cuts a stream of text into events. Comments are dropped: that they came at all is the reader's news. */
export class EventParser {
  private rest = ''

  push(text: string): ServerEvent[] {
    const blocks = (this.rest + text).replaceAll('\r\n', '\n').split('\n\n')
    this.rest = blocks.pop() ?? ''
    return blocks.map(parseBlock).filter((event) => event !== null)
  }
}

function parseBlock(block: string): ServerEvent | null {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return data.length === 0 ? null : { event, data: data.join('\n') }
}
