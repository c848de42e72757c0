/** The limit of one wait, for a machine that is busy with other tests. The libraries' own is 1 s. */
export const LIMIT_MS = 30_000
