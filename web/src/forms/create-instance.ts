// The create form as data: what is typed, what is wrong with it, and the request it becomes. The gateway stays the
// judge; what is checked here is checked only so that one learns of it while typing.

import type { TFunction } from 'i18next'

import type { Largest } from '../api/site'
import type { CreateInstance, Instance, UseSecret } from '../api/types'
import { formatBytes, GIB } from '../util/format'
import { quoteWord, splitWords } from '../util/shell-words'
import type { EnvRow } from './file-text'

/** Number inputs hold text while they are empty or half typed. */
export interface CreateValues {
  name: string
  image: string
  cpus: number | string
  memoryGib: number | string
  shmGib: number | string
  gpus: number | string
  /** Empty for any. */
  gpuModel: string
  /** Empty for the site's first. */
  cluster: string
  /** Empty for any. */
  pool: string
  env: EnvRow[]
  command: string
  /** Whether it starts by itself when somebody comes to it. */
  autoStart: boolean
  /** Those of the instance that is cloned. */
  secrets: UseSecret[]
}

type Translate = TFunction<'create'>
type Errors = Record<string, string>

const NAME_MAX = 27
const LEAST_MEMORY_GIB = 0.0625

export function startingValues(largest: Largest | null, defaultImage: string): CreateValues {
  const memory = largest === null ? 4 : Math.max(1, Math.min(4, Math.floor(largest.memoryBytes / GIB)))
  return {
    name: '',
    image: defaultImage,
    cpus: Math.min(2, largest?.cpus ?? 2),
    memoryGib: memory,
    shmGib: Math.min(1, memory),
    gpus: 0,
    gpuModel: '',
    cluster: '',
    pool: '',
    env: [],
    command: '',
    autoStart: false,
    secrets: [],
  }
}

/** The cluster as a request names it: the site's first needs no name. */
function clusterOf({ cluster = '' }: Instance, first: string | undefined): string {
  return cluster === first ? '' : cluster
}

/** The request that would make the like of an instance. */
export function specOf(instance: Instance, firstCluster?: string): CreateInstance {
  const cluster = clusterOf(instance, firstCluster)
  return {
    name: instance.name,
    image: instance.image,
    cpus: instance.cpus,
    memory_bytes: instance.memory_bytes,
    gpus: instance.gpus,
    ...(instance.gpu_model && { gpu_model: instance.gpu_model }),
    ...(cluster !== '' && { cluster }),
    ...(instance.pool && { pool: instance.pool }),
    ...(instance.auto_start && { auto_start: true }),
    ...(instance.shm_bytes > 0 && { shm_bytes: instance.shm_bytes }),
    ...(Object.keys(instance.env).length > 0 && { env: instance.env }),
    ...(instance.command.length > 0 && { command: instance.command }),
    ...(instance.secrets && { secrets: instance.secrets }),
  }
}

/** The form as it would be for a clone, under another name. */
export function valuesLike(instance: Instance, firstCluster?: string): CreateValues {
  return {
    name: cloneName(instance.name),
    image: instance.image,
    cpus: instance.cpus,
    memoryGib: instance.memory_bytes / GIB,
    shmGib: instance.shm_bytes / GIB,
    gpus: instance.gpus,
    gpuModel: instance.gpu_model ?? '',
    cluster: clusterOf(instance, firstCluster),
    pool: instance.pool ?? '',
    autoStart: instance.auto_start ?? false,
    secrets: instance.secrets ?? [],
    env: Object.entries(instance.env).map(([key, value], id) => ({ id, key, value })),
    command: instance.command.map(quoteWord).join(' '),
  }
}

/** A name that none of these has yet: `dev_1`, `dev_2`. */
export function freshName(taken: readonly string[]): string {
  const number = taken.findIndex((_, index) => !taken.includes(`dev_${index + 1}`))
  return `dev_${(number === -1 ? taken.length : number) + 1}`
}

/** `train` becomes `train_2`, and `train_2` becomes `train_3`. */
export function cloneName(name: string): string {
  const [, stem = name, number] = /^(.+?)(?:_(\d+))?$/.exec(name) ?? []
  const end = `_${number === undefined ? 2 : Number(number) + 1}`
  return `${stem.slice(0, NAME_MAX - end.length)}${end}`
}

/** What addresses will call it; the gateway's own rule, shown while typing. */
export function slugOf(name: string): string {
  const slug = name.toLowerCase().replaceAll(/_+/g, '-').replaceAll(/^-|-$/g, '')
  return slug === '' ? 'x' : slug
}

export function nameError(name: string, t: Translate): string | null {
  if (name === '') return t('name.needed')
  if (!/^[A-Za-z0-9_]*$/.test(name)) return t('name.letters')
  if (name.length > NAME_MAX) return t('name.long', { count: name.length })
  return null
}

function numberError(
  value: number | string,
  least: number,
  most: number | undefined,
  t: Translate,
): string | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return t('number.needed')
  if (value < least) return t('number.small', { least })
  if (most !== undefined && value > most) return t('number.large', { most: Number(most.toFixed(1)) })
  return null
}

function envErrors(rows: EnvRow[], t: Translate): Errors {
  const errors: Errors = {}
  rows.forEach(({ key }, index) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) errors[`env.${index}.key`] = t('env.bad_key')
    else if (rows.findIndex((other) => other.key === key) < index) errors[`env.${index}.key`] = t('env.twice')
  })
  return errors
}

/** Everything that is wrong, by the form's field names. */
export function createErrors(values: CreateValues, largest: Largest | null, t: Translate): Errors {
  const mostMemory = largest === null ? undefined : largest.memoryBytes / GIB
  const shm = numberError(values.shmGib, 0, undefined, t)
  const shmBeyond = Number(values.shmGib) > Number(values.memoryGib) ? t('shm_beyond_memory') : null
  const found: Record<string, string | null> = {
    name: nameError(values.name, t),
    image: /\s/.test(values.image.trim()) ? t('image.spaces') : null,
    cpus: numberError(values.cpus, 0.1, largest?.cpus, t),
    memoryGib: numberError(values.memoryGib, LEAST_MEMORY_GIB, mostMemory, t),
    shmGib: shm ?? shmBeyond,
    gpus: numberError(values.gpus, 0, largest?.gpus, t),
    command: splitWords(values.command) === null ? t('command.open_quote') : null,
    ...envErrors(values.env, t),
  }
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== null),
  )
}

export function requestFrom(values: CreateValues): CreateInstance {
  const image = values.image.trim()
  const model = values.gpuModel.trim()
  const shm = Math.round(Number(values.shmGib) * GIB)
  const command = splitWords(values.command) ?? []
  const env = values.env.filter(({ key }) => key !== '').map(({ key, value }) => [key, value])
  return {
    name: values.name,
    cpus: Number(values.cpus),
    memory_bytes: Math.round(Number(values.memoryGib) * GIB),
    gpus: Number(values.gpus),
    ...(image !== '' && { image }),
    ...(Number(values.gpus) > 0 && model !== '' && { gpu_model: model }),
    ...(values.cluster !== '' && { cluster: values.cluster }),
    ...(values.pool !== '' && { pool: values.pool }),
    ...(values.autoStart && { auto_start: true }),
    ...(shm > 0 && { shm_bytes: shm }),
    ...(env.length > 0 && { env: Object.fromEntries(env) }),
    ...(command.length > 0 && { command }),
    ...(values.secrets.length > 0 && { secrets: values.secrets }),
  }
}

/** The form's field for a JSON pointer of the gateway, such as `/memory_bytes`. */
export function fieldAt(pointer: string | null | undefined): keyof CreateValues | null {
  switch (pointer?.split('/')[1]) {
    case 'name':
      return 'name'
    case 'image':
      return 'image'
    case 'cpus':
      return 'cpus'
    case 'memory_bytes':
      return 'memoryGib'
    case 'shm_bytes':
      return 'shmGib'
    case 'gpus':
      return 'gpus'
    case 'gpu_model':
      return 'gpuModel'
    case 'cluster':
      return 'cluster'
    case 'pool':
      return 'pool'
    case 'command':
      return 'command'
    default:
      return null
  }
}

/** How many of the settings that only the professional mode shows are not as they are of themselves. */
export function professionalCount({ env, command, secrets, autoStart }: CreateValues): number {
  return [env.length > 0, command.trim() !== '', secrets.length > 0, autoStart].filter(Boolean).length
}

export function memoryText(largest: Largest): string {
  return formatBytes(largest.memoryBytes)
}
