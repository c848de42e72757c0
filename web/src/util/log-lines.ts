// The tail of a log as lines of plain text. Bounded: a log of gigabytes costs no more than its last lines.

export const LINE_LIMIT = 5_000
/** A "line" of megabytes (a progress bar without line ends, a binary file) is cut. */
export const LINE_LENGTH_LIMIT = 10_000

/** How many lines of a long log are shown around one of them, and how many always come before and after it. */
export const PART_LINES = 2_000
const PART_MARGIN = 500

/** The first of the lines that are shown around one. Its neighbours have the same, so that a step is no new question. */
export function partAround(line: number): number {
  const block = PART_LINES - 2 * PART_MARGIN
  return Math.max(Math.floor((line - 1) / block) * block + 1 - PART_MARGIN, 1)
}

// CSI and OSC sequences, and the two-byte escapes: what a terminal obeys and a reader should not see.
// oxlint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])/g

/** What stays of a line after its escapes and its returns to the left margin (progress bars redraw that way). */
export function plainLine(raw: string): string {
  const line = raw.replace(ESCAPES, '').replace(/\r+$/, '')
  return line.slice(line.lastIndexOf('\r') + 1)
}

export class LogLines {
  /** Whether there may be lines before these: some were dropped, or the gateway was not asked for more. */
  cut = false
  private lines: string[] = []
  private open = ''

  push(text: string) {
    const parts = (this.open + text).split('\n')
    const open = parts.pop() ?? ''
    this.open = open.length > LINE_LENGTH_LIMIT ? open.slice(-LINE_LENGTH_LIMIT) : open
    for (const part of parts) this.lines.push(plainLine(part).slice(0, LINE_LENGTH_LIMIT))
    if (this.lines.length >= LINE_LIMIT) {
      this.lines.splice(0, this.lines.length - LINE_LIMIT)
      this.cut = true
    }
  }

  text(): string {
    const open = plainLine(this.open)
    return open === '' ? this.lines.join('\n') : [...this.lines, open].join('\n')
  }
}
