// Between a command as people type it and the list of words that is run. Quotes and backslashes as in a POSIX shell;
// nothing is expanded, because there is no shell.

/** The words, or null when a quotation mark is not closed. */
export function splitWords(text: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  let quote: '"' | "'" | null = null
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charAt(at)
    if (quote !== null) {
      if (letter === quote) quote = null
      else if (quote === '"' && letter === '\\' && /["\\$`]/.test(text.charAt(at + 1)))
        word += text.charAt((at += 1))
      else word += letter
    } else if (letter === '"' || letter === "'") {
      quote = letter
      word ??= ''
    } else if (letter === '\\' && at + 1 < text.length) {
      word = (word ?? '') + text.charAt((at += 1))
    } else if (/\s/.test(letter)) {
      if (word !== null) words.push(word)
      word = null
    } else {
      word = (word ?? '') + letter
    }
  }
  if (quote !== null) return null
  if (word !== null) words.push(word)
  return words
}

/** The word as it must be typed so that a shell gives back exactly it. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
