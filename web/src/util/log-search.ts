// Finding something in a log: by a regular expression, or by the plain text if it is none.

/** More than anyone steps through, and still quick to draw. */
export const MATCH_LIMIT = 2_000

export interface Piece {
  text: string
  /** Which match it is, if it is one. */
  match?: number
}

export function pattern(search: string): RegExp | null {
  if (search === '') return null
  try {
    return new RegExp(search, 'gi')
  } catch {
    return new RegExp(search.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`), 'gi')
  }
}

/** The text cut at its matches. */
export function cutAtMatches(text: string, search: string): { pieces: Piece[]; count: number } {
  const wanted = pattern(search)
  if (wanted === null) return { pieces: [{ text }], count: 0 }
  const pieces: Piece[] = []
  let count = 0
  let from = 0
  for (const found of text.matchAll(wanted)) {
    // An expression that matches nothing at all matches everywhere.
    if (found[0] === '') continue
    if (count === MATCH_LIMIT) break
    if (found.index > from) pieces.push({ text: text.slice(from, found.index) })
    pieces.push({ text: found[0], match: count })
    count += 1
    from = found.index + found[0].length
  }
  if (from < text.length) pieces.push({ text: text.slice(from) })
  return { pieces, count }
}

/** The same pieces, line by line. */
export function linesOf(pieces: readonly Piece[]): Piece[][] {
  const lines: Piece[][] = [[]]
  for (const { text, match } of pieces) {
    text.split('\n').forEach((part, index) => {
      if (index > 0) lines.push([])
      if (part !== '') lines.at(-1)?.push(match === undefined ? { text: part } : { text: part, match })
    })
  }
  return lines
}
