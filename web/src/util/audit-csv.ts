import type { AuditEntry } from '../api/types'
import { csvTable } from './csv'

const COLUMNS = ['id', 'at', 'actor', 'act', 'result', 'object', 'details', 'source', 'request_id'] as const

/** Lines of the audit log for a spreadsheet, in the words of the API. */
export function auditCsv(lines: readonly AuditEntry[]): string {
  const rows = lines.map(({ details = {}, ...line }) => {
    const said = Object.entries(details).map(([key, value]) => `${key}=${value}`)
    return COLUMNS.map((column) => (column === 'details' ? said.join(' ') : (line[column] ?? '')))
  })
  return csvTable(COLUMNS, rows)
}
