// The job form as data. The file is the job: the form only writes one, in Berth's own language, and reads back no other
// than it could have written itself.

import { parse, stringify } from 'yaml'

import { HOUR_S } from '../util/format'

/** Number inputs hold text while they are empty or half typed. */
export interface JobValues {
  name: string
  image: string
  command: string
  cpus: number | string
  memoryGib: number | string
  gpus: number | string
  tasks: number | string
  limitHours: number | string
  retries: number | string
}

export function startingJob(image: string): JobValues {
  return {
    name: '',
    image,
    command: 'sleep infinity',
    cpus: 1,
    memoryGib: 2,
    gpus: 0,
    tasks: 1,
    limitHours: 0,
    retries: 0,
  }
}

/** The job file that the form stands for. What is as it would be anyway is left out. */
export function fileFrom(values: JobValues): string {
  const { tasks, gpus, limitHours, retries } = values
  const minutes = Math.round(Number(limitHours) * 60)
  return stringify({
    berth: 1,
    name: values.name.trim(),
    image: values.image.trim(),
    ...(Number(tasks) !== 1 && { tasks: Number(tasks) }),
    cpus: Number(values.cpus),
    memory: `${Math.round(Number(values.memoryGib) * 1024)}M`,
    ...(Number(gpus) > 0 && { gpus: Number(gpus) }),
    ...(minutes > 0 && { time_limit: `${minutes}m` }),
    ...(Number(retries) > 0 && { retries: Number(retries) }),
    command: values.command,
  })
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

/** The form for a file, if the form can say all that the file says; null if not. */
export function valuesFrom(file: string): JobValues | null {
  let read: unknown
  try {
    read = parse(file)
  } catch {
    return null
  }
  if (typeof read !== 'object' || read === null || !('berth' in read) || read.berth !== 1) return null
  const fields: Partial<Record<string, unknown>> = { ...read }
  const [, memory] = /^(\d+)M$/.exec(String(fields.memory)) ?? []
  const [, minutes] = /^(\d+)m$/.exec(String(fields.time_limit ?? '0m')) ?? []
  const values: JobValues = {
    name: String(fields.name ?? ''),
    image: String(fields.image ?? ''),
    command: String(fields.command ?? ''),
    cpus: numberOf(fields.cpus, 1),
    memoryGib: Number(memory) / 1024,
    gpus: numberOf(fields.gpus, 0),
    tasks: numberOf(fields.tasks, 1),
    limitHours: (Number(minutes) * 60) / HOUR_S,
    retries: numberOf(fields.retries, 0),
  }
  return fileFrom(values) === file ? values : null
}

/** A file that is there already, under a name that is not taken. */
export function renamed(file: string, name: string): string {
  const values = valuesFrom(file)
  return values === null ? file : fileFrom({ ...values, name })
}
