// The job form as data. The file is the job: the form reads a part of it and writes back only what was changed there, so
// that comments, order and all that the form does not know stay as they are.

import { type Document, isMap, isNode, isScalar, isSeq, type Pair, parseDocument, stringify } from 'yaml'

import { DAY_S, HOUR_S } from '../util/format'
import {
  asFormat,
  type EnvRow,
  envOf,
  type FileFormat,
  gibOf,
  isJson,
  numberOf,
  sizeOf,
  textOf,
  wordOf,
} from './file-text'

/** Number inputs hold text while they are empty or half typed; and the words that may stand for a number in a file. */
export interface JobValues {
  name: string
  gpuModel: string
  limitHours: number | string
  retries: number | string
  keepOnFailure: boolean
  env: EnvRow[]
  /** Which of the roles the fields below are of. */
  role: number
  roleName: string
  image: string
  command: string
  tasks: number | string
  /** How many tasks end the job by failing, and by succeeding; empty for as it is of itself. */
  failAfter: number | string
  succeedAfter: number | string
  cpus: number | string
  memoryGib: number | string
  shmGib: number | string
  gpus: number | string
  /** Labels, separated by commas. */
  ports: string
  description: string
  priority: number | string
  pool: string
  /** `from:to`, one in each line. */
  mounts: string
}

/** How many of the settings that only the professional mode shows are not as they are of themselves. */
export function professionalCount(values: JobValues): number {
  const { retries, tasks, env, description, priority, mounts, failAfter, succeedAfter } = values
  const set = [
    retries !== '',
    tasks !== '' && tasks !== 1,
    env.length > 0,
    description !== '',
    priority !== '',
    mounts !== '',
    failAfter !== '',
    succeedAfter !== '',
  ]
  return set.filter(Boolean).length
}

/** The file that a new job begins with. */
export function startingFile(image: string): string {
  return stringify({ berth: 1, image, cpus: 1, memory: '2G', command: 'sleep infinity' })
}

/** The file as a document, if it is one of Berth's own that can be read. */
function documentOf(file: string): Document | null {
  const document = parseDocument(file)
  return document.errors.length === 0 && document.get('berth') === 1 ? document : null
}

/** The same job as YAML or as JSON; null if it is not Berth's own or has mistakes. */
export function written(file: string, as: FileFormat): string | null {
  const document = documentOf(file)
  return document && asFormat(document, file, as)
}

/** The names of its roles; the one of a file without roles has none. */
export function roleNames(file: string): string[] {
  const roles: unknown = documentOf(file)?.toJS()?.roles
  return Array.isArray(roles) ? roles.map((role, index) => String(role?.name ?? index + 1)) : []
}

type Path = (string | number)[]

/** Where the fields of a role are: in the list of roles, or at the top where there is only one. */
function roleAt(document: Document, role: number): Path {
  return document.has('roles') ? ['roles', role] : []
}

/** The name of the only role where the file gives it none. */
export const ONLY_ROLE = 'main'

const TOP_FIELDS: Partial<Record<string, keyof JobValues>> = {
  name: 'name',
  gpu_model: 'gpuModel',
  time_limit: 'limitHours',
  retries: 'retries',
  description: 'description',
  priority: 'priority',
  pool: 'pool',
  mounts: 'mounts',
}

const ROLE_FIELDS: Partial<Record<string, keyof JobValues>> = {
  name: 'roleName',
  image: 'image',
  command: 'command',
  program: 'command',
  tasks: 'tasks',
  cpus: 'cpus',
  memory: 'memoryGib',
  shm: 'shmGib',
  gpus: 'gpus',
  ports: 'ports',
  fail_after: 'failAfter',
  succeed_after: 'succeedAfter',
}

/** The form's field for a place in the file, while it shows this role; null for what it does not show. */
export function fieldAt(pointer: string, role: number): keyof JobValues | null {
  const [, first = '', second = '', third = ''] = pointer.split('/')
  if (first === 'roles') return (second === String(role) && ROLE_FIELDS[third]) || null
  return TOP_FIELDS[first] ?? ROLE_FIELDS[first] ?? null
}

/** What belongs to a role, also where it stands at the top. */
const OF_ROLE: readonly string[] = [
  'tasks',
  'image',
  'command',
  'program',
  'work_dir',
  'cpus',
  'memory',
  'shm',
  'gpus',
  'ports',
  'fail_after',
  'succeed_after',
  'task_retries',
]

const isOfRole = ({ key }: Pair) => isScalar(key) && OF_ROLE.includes(String(key.value))

/** Makes a list of roles of the one whose fields stand at the top. */
function listRoles(document: Document) {
  const { contents } = document
  if (document.has('roles') || !isMap(contents)) return
  const own = contents.items.filter(isOfRole)
  contents.items = contents.items.filter((pair) => !isOfRole(pair))
  document.set('roles', document.createNode([{ name: ONLY_ROLE }]))
  const only = document.getIn(['roles', 0])
  if (isMap(only)) only.items.push(...own)
}

/** The file with one more role, which begins with the image of the last one. */
export function withRole(file: string): string {
  const document = documentOf(file)
  if (document === null) return file
  listRoles(document)
  const taken = roleNames(textOf(document, true))
  const names = ['worker', ...taken.map((_, index) => `worker${index + 2}`)]
  const name = names.find((one) => !taken.includes(one)) ?? ONLY_ROLE
  const image = document.getIn(['roles', taken.length - 1, 'image'])
  const role = {
    name,
    ...(image !== undefined && { image }),
    cpus: 1,
    memory: '2G',
    command: 'sleep infinity',
  }
  document.addIn(['roles'], document.createNode(role))
  return textOf(document, isJson(file))
}

/** The file without a role; the last one stays. */
export function withoutRole(file: string, role: number): string {
  const document = documentOf(file)
  const roles = document?.get('roles')
  if (!document || !isSeq(roles) || roles.items.length < 2) return file
  document.deleteIn(['roles', role])
  return textOf(document, isJson(file))
}

const TIME = /^(?:(\d+)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+)m)?(?:(\d+)s)?$/

function hoursOf(value: unknown): number | string {
  // A bare number is minutes.
  const text = typeof value === 'number' ? `${value}m` : String(value ?? '')
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = TIME.exec(text) ?? []
  const rest = Number(days) * DAY_S + Number(minutes) * 60 + Number(seconds)
  const total = Number(hours) + rest / HOUR_S
  return text === '' || total === 0 ? '' : total
}

/** A number, or the word that stands for it: `never`, `after-failure`. */
function countOf(value: unknown): number | string {
  return typeof value === 'number' ? value : wordOf(value)
}

function timeOf(hours: number | string): string | undefined {
  const minutes = Math.round(Number(hours) * 60)
  if (hours === '' || !(minutes > 0)) return undefined
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`
}

function labelOf(port: unknown): string {
  return typeof port === 'object' && port !== null && 'label' in port ? wordOf(port.label) : ''
}

function portsOf(value: unknown): string {
  const ports: unknown[] = Array.isArray(value) ? value : []
  return ports.map(labelOf).filter(Boolean).join(', ')
}

function mountLine(mount: unknown): string {
  return typeof mount === 'object' && mount !== null && 'from' in mount && 'to' in mount
    ? `${wordOf(mount.from)}:${wordOf(mount.to)}`
    : ''
}

function mountsOf(value: unknown): string {
  const mounts: unknown[] = Array.isArray(value) ? value : []
  return mounts.map(mountLine).filter(Boolean).join('\n')
}

/** What the form shows of a file; null if it is not Berth's own or cannot be read. */
export function readJob(file: string, role = 0): JobValues | null {
  const document = documentOf(file)
  if (document === null) return null
  const at = roleAt(document, role)
  const plain: unknown = document.toJS()
  const get = (path: Path): unknown =>
    path.reduce<unknown>(
      (inner, key) =>
        typeof inner === 'object' && inner !== null ? Reflect.get(inner, String(key)) : undefined,
      plain,
    )
  return {
    name: wordOf(get(['name'])),
    gpuModel: wordOf(get(['gpu_model'])),
    limitHours: hoursOf(get(['time_limit'])),
    retries: countOf(get(['retries'])),
    keepOnFailure: get(['keep_on_failure']) === true,
    env: envOf(document),
    role,
    roleName: wordOf(get([...at, 'name'])),
    image: wordOf(get([...at, 'image'])),
    command: wordOf(get([...at, 'command'])),
    tasks: numberOf(get([...at, 'tasks'])),
    failAfter: countOf(get([...at, 'fail_after'])),
    succeedAfter: countOf(get([...at, 'succeed_after'])),
    cpus: numberOf(get([...at, 'cpus'])),
    memoryGib: gibOf(get([...at, 'memory'])),
    shmGib: gibOf(get([...at, 'shm'])),
    gpus: numberOf(get([...at, 'gpus'])),
    ports: portsOf(get([...at, 'ports'])),
    description: wordOf(get(['description'])),
    priority: numberOf(get(['priority'])),
    pool: wordOf(get(['pool'])),
    mounts: mountsOf(get(['mounts'])),
  }
}

function optional(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim()
}

function count(value: number | string): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function portList(labels: string): { label: string }[] {
  const found = labels.split(/[,，\s]+/).filter((label) => label !== '')
  return found.map((label) => ({ label }))
}

function mountList(lines: string): { from: string; to: string }[] {
  return lines.split('\n').flatMap((line) => {
    const colon = line.lastIndexOf(':')
    return line.trim() === '' || colon === -1
      ? []
      : [{ from: line.slice(0, colon).trim(), to: line.slice(colon + 1).trim() }]
  })
}

/** Writes a list of which the form shows only a part, `shown`: what it says of an entry alike stays as it is. */
function putList(document: Document, path: Path, wanted: object[], shown: (entry: unknown) => string) {
  const list = document.getIn(path)
  const before = isSeq(list) ? list.items.map((item) => ({ item, is: shown(plainOf(item, document)) })) : []
  const items: unknown[] = wanted.map((entry) => {
    const at = before.findIndex(({ is }) => is === shown(entry))
    return at === -1 ? document.createNode(entry) : before.splice(at, 1)[0]?.item
  })
  // An entry that the form cannot show was not taken out there.
  items.push(...before.filter(({ is }) => is === '').map(({ item }) => item))
  if (items.length === 0) document.deleteIn(path)
  else if (isSeq(list)) list.items = items
  else document.setIn(path, document.createNode(wanted))
}

function plainOf(item: unknown, document: Document): unknown {
  return isNode(item) ? item.toJS(document) : item
}

function envMap(rows: EnvRow[]): Record<string, string> | undefined {
  const named = rows.filter(({ key }) => key.trim() !== '')
  return named.length === 0
    ? undefined
    : Object.fromEntries(named.map(({ key, value }) => [key.trim(), value]))
}

/** The file with what was changed in the form from `before` to `after`, and nothing else. */
export function writeJob(file: string, before: JobValues, after: JobValues): string {
  const document = documentOf(file)
  if (document === null) return file
  const changed = (field: keyof JobValues) => before[field] !== after[field]
  if (changed('roleName')) listRoles(document)
  const at = roleAt(document, after.role)
  const put = (path: Path, value: unknown) =>
    value === undefined ? document.deleteIn(path) : document.setIn(path, document.createNode(value))

  // A name that is new stands at the top.
  if (changed('name') && !document.has('name') && isMap(document.contents)) {
    document.contents.items.splice(1, 0, document.createPair('name', ''))
  }
  if (changed('name')) put(['name'], optional(after.name))
  if (changed('gpuModel')) put(['gpu_model'], optional(after.gpuModel))
  if (changed('limitHours')) put(['time_limit'], timeOf(after.limitHours))
  if (changed('retries')) put(['retries'], count(after.retries))
  if (changed('keepOnFailure')) put(['keep_on_failure'], after.keepOnFailure || undefined)
  if (changed('env')) put(['env'], envMap(after.env))
  if (changed('roleName')) put([...at, 'name'], optional(after.roleName))
  if (changed('image')) put([...at, 'image'], optional(after.image))
  if (changed('command')) put([...at, 'command'], after.command === '' ? undefined : after.command)
  if (changed('tasks')) put([...at, 'tasks'], count(after.tasks))
  if (changed('failAfter')) put([...at, 'fail_after'], count(after.failAfter))
  if (changed('succeedAfter')) put([...at, 'succeed_after'], count(after.succeedAfter))
  if (changed('cpus')) put([...at, 'cpus'], count(after.cpus))
  if (changed('memoryGib')) put([...at, 'memory'], sizeOf(after.memoryGib))
  if (changed('shmGib')) put([...at, 'shm'], sizeOf(after.shmGib))
  if (changed('gpus')) put([...at, 'gpus'], count(after.gpus))
  if (changed('ports')) putList(document, [...at, 'ports'], portList(after.ports), labelOf)
  if (changed('description')) put(['description'], optional(after.description))
  if (changed('priority')) put(['priority'], count(after.priority))
  if (changed('pool')) put(['pool'], optional(after.pool))
  if (changed('mounts')) putList(document, ['mounts'], mountList(after.mounts), mountLine)
  return textOf(document, isJson(file))
}

/** The file with at most so many GPUs for each task, where the form can say it. */
export function withGpus(file: string, gpus: number | undefined): string {
  if (gpus === undefined) return file
  const roles = Math.max(roleNames(file).length, 1)
  return Array.from({ length: roles }, (_, role) => role).reduce((before, role) => {
    const values = readJob(before, role)
    const less = values !== null && Number(values.gpus) > gpus
    return less ? writeJob(before, values, { ...values, gpus }) : before
  }, file)
}

/** The file under another name, where the form can say it. */
export function renamed(file: string, name: string): string {
  const values = readJob(file)
  return values === null ? file : writeJob(file, values, { ...values, name })
}
