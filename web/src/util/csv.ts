// Tables as spreadsheets read them.

/** A cell that is text to a spreadsheet: neither several cells nor a formula. */
function cell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function csvTable(columns: readonly string[], rows: readonly (string | number)[][]): string {
  const lines = [columns, ...rows].map((row) => row.map(cell).join(','))
  return `${lines.join('\r\n')}\r\n`
}
