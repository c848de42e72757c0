/** How long a browser may take to begin with a file that it was given. */
const TAKEN_MS = 60_000

/** Lets the browser save a text as a file. */
export function saveFile(name: string, text: string, type = 'text/plain') {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(address), TAKEN_MS)
}
