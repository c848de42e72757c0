// Folders inside an instance, as people type them. The instance judges them; this only spares a round trip.

/** What is each user's own and stays. */
export const HOME = '/userhome'

/** What is wrong with a folder's path; null if nothing is. */
export function folderProblem(path: string): 'needed' | 'not_absolute' | null {
  if (path === '') return 'needed'
  return path.startsWith('/') ? null : 'not_absolute'
}
