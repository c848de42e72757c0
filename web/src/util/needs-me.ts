// What waits for somebody to do something about it.

import type { Image, Instance, Job } from '../api/types'

export interface Need {
  key: string
  why: 'failed' | 'job_failed' | 'save_failed' | 'ends_soon' | 'kept'
  name: string
  /** The thing itself, for a link. */
  of: { kind: 'instance' | 'job' | 'images'; id: string }
  /** When it ends by itself. */
  at?: string
}

const HOUR_MS = 3_600_000
/** A job that ends within this time may want more. */
const SOON_MS = HOUR_MS / 2
/** What failed longer ago is known by now. */
const NEWS_MS = 24 * HOUR_MS

const after = (text: string, milliseconds: number) => new Date(text).getTime() + milliseconds

function endOf({ started_at, time_limit_seconds }: Job): number | null {
  return started_at && time_limit_seconds ? after(started_at, time_limit_seconds * 1000) : null
}

function ofJob(job: Job, now: number): Need[] {
  const need = { name: job.name, of: { kind: 'job' as const, id: job.id } }
  if (job.kept_until && after(job.kept_until, 0) > now) {
    return [{ ...need, key: `kept/${job.id}`, why: 'kept', at: job.kept_until }]
  }
  if (job.status.state === 'failed' && job.ended_at && after(job.ended_at, NEWS_MS) > now) {
    return [{ ...need, key: `job/${job.id}`, why: 'job_failed' }]
  }
  const end = job.status.state === 'running' ? endOf(job) : null
  if (end === null || end < now || end > now + SOON_MS) return []
  return [{ ...need, key: `ends/${job.id}`, why: 'ends_soon', at: new Date(end).toISOString() }]
}

/** Of one's own things: what has failed, and what ends soon. */
export function needsOf(
  me: string,
  { instances, jobs, images }: { instances: Instance[]; jobs: Job[]; images: Image[] },
  now: number,
): Need[] {
  const failed = instances
    .filter(({ status, job }) => status.state === 'failed' && !job)
    .map(({ id, name }): Need => ({ key: id, why: 'failed', name, of: { kind: 'instance', id } }))
  const unsaved = images
    .flatMap(({ saved }) => (saved?.user === me && saved.state.state === 'failed' ? [saved] : []))
    .map(({ id, name }): Need => ({ key: id, why: 'save_failed', name, of: { kind: 'images', id } }))
  return [...jobs.flatMap((job) => ofJob(job, now)), ...failed, ...unsaved]
}
