// Filters of lists, as they stand in the address.

export interface FilterSearch {
  /** What a row's text must hold. */
  find?: string
  /** Names of states, with commas between them. */
  state?: string
  /** Names of users, with commas between them. */
  user?: string
}

export interface Filter {
  find: string
  states: readonly string[]
  users: readonly string[]
}

/** What a filter looks at in a row. */
export interface Filterable<T> {
  text: (row: T) => string
  state: (row: T) => string
  user?: (row: T) => string
}

const isWord = (value: unknown) =>
  (typeof value === 'string' && value !== '') ||
  // A number is a name too, to whoever reads the address.
  typeof value === 'number'

export function readFilter({ find, state, user }: Record<string, unknown>): FilterSearch {
  return {
    ...(isWord(find) && { find: String(find) }),
    ...(isWord(state) && { state: String(state) }),
    ...(isWord(user) && { user: String(user) }),
  }
}

const listed = (names = '') => names.split(',').filter((name) => name !== '')

export function filterOf({ find = '', state, user }: FilterSearch): Filter {
  return { find: find.trim().toLowerCase(), states: listed(state), users: listed(user) }
}

export function filtered<T>(rows: readonly T[], filter: Filter, { text, state, user }: Filterable<T>): T[] {
  const { find, states, users } = filter
  return rows.filter(
    (row) =>
      text(row).toLowerCase().includes(find) &&
      (states.length === 0 || states.includes(state(row))) &&
      (user === undefined || users.length === 0 || users.includes(user(row))),
  )
}
