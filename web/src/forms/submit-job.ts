// The job form as data. The file is the job: the form reads a part of it and writes back only what was changed there, so
// that comments, order and all that the form does not know stay as they are.

import { type Document, isMap, isScalar, parseDocument, stringify } from 'yaml'

import { GIB, HOUR_S, MIB } from '../util/format'

export interface EnvRow {
  id: number
  key: string
  value: string
}

/** Number inputs hold text while they are empty or half typed. */
export interface JobValues {
  name: string
  gpuModel: string
  limitHours: number | string
  retries: number | string
  env: EnvRow[]
  /** Which of the roles the fields below are of. */
  role: number
  image: string
  command: string
  tasks: number | string
  cpus: number | string
  memoryGib: number | string
  shmGib: number | string
  gpus: number | string
  /** Labels, separated by commas. */
  ports: string
}

/** The file that a new job begins with. */
export function startingFile(image: string): string {
  return stringify({ berth: 1, image, cpus: 1, memory: '2G', command: 'sleep infinity' })
}

export function isJson(file: string): boolean {
  return file.trimStart().startsWith('{')
}

/** The file as a document, if it is one of Berth's own that can be read. */
function documentOf(file: string): Document | null {
  const document = parseDocument(file)
  return document.errors.length === 0 && document.get('berth') === 1 ? document : null
}

function textOf(document: Document, json: boolean): string {
  return json ? `${JSON.stringify(document.toJS(), null, 2)}\n` : document.toString({ lineWidth: 0 })
}

/** The same job as YAML or as JSON; null if it is not Berth's own or has mistakes. */
export function written(file: string, as: 'yaml' | 'json'): string | null {
  const document = documentOf(file)
  if (document === null || (as === 'json') === isJson(file)) return document && file
  return as === 'json' ? textOf(document, true) : stringify(document.toJS(), { lineWidth: 0 })
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

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i
const UNIT: Record<string, number> = { '': 1, k: 1024, m: MIB, g: GIB, t: 1024 * GIB }

/** `8G`, `512M` in GiB; empty for what the form cannot say. */
function gibOf(value: unknown): number | string {
  const [, number, unit = ''] = SIZE.exec(String(value ?? '')) ?? []
  return number === undefined ? '' : (Number(number) * (UNIT[unit.toLowerCase()] ?? 1)) / GIB
}

function sizeOf(gib: number | string): string | undefined {
  if (gib === '' || !Number.isFinite(Number(gib))) return undefined
  const mib = Math.round(Number(gib) * 1024)
  return mib > 0 && mib % 1024 === 0 ? `${mib / 1024}G` : `${mib}M`
}

const TIME = /^(?:(\d+(?:\.\d+)?)h)?(?:(\d+)m)?(?:(\d+)s)?$/

function hoursOf(value: unknown): number | string {
  const text = String(value ?? '')
  const [, hours = '0', minutes = '0', seconds = '0'] = TIME.exec(text) ?? []
  const total = Number(hours) + (Number(minutes) * 60 + Number(seconds)) / HOUR_S
  return text === '' || total === 0 ? '' : total
}

function timeOf(hours: number | string): string | undefined {
  const minutes = Math.round(Number(hours) * 60)
  if (hours === '' || !(minutes > 0)) return undefined
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`
}

function numberOf(value: unknown): number | string {
  return typeof value === 'number' ? value : ''
}

function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** A value as it was typed: `1.10` is no number here. */
function sourceOf(node: unknown): string {
  return isScalar(node) ? (node.source ?? String(node.value)) : ''
}

function envOf(document: Document): EnvRow[] {
  const map = document.get('env')
  if (!isMap(map)) return []
  return map.items.map(({ key, value }, id) => ({ id, key: sourceOf(key), value: sourceOf(value) }))
}

function labelOf(port: unknown): string {
  return typeof port === 'object' && port !== null && 'label' in port ? wordOf(port.label) : ''
}

function portsOf(value: unknown): string {
  const ports: unknown[] = Array.isArray(value) ? value : []
  return ports.map(labelOf).join(', ')
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
    retries: numberOf(get(['retries'])),
    env: envOf(document),
    role,
    image: wordOf(get([...at, 'image'])),
    command: wordOf(get([...at, 'command'])),
    tasks: numberOf(get([...at, 'tasks'])),
    cpus: numberOf(get([...at, 'cpus'])),
    memoryGib: gibOf(get([...at, 'memory'])),
    shmGib: gibOf(get([...at, 'shm'])),
    gpus: numberOf(get([...at, 'gpus'])),
    ports: portsOf(get([...at, 'ports'])),
  }
}

function optional(text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim()
}

function count(value: number | string): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function portList(labels: string): { label: string }[] | undefined {
  const found = labels.split(/[,，\s]+/).filter((label) => label !== '')
  return found.length === 0 ? undefined : found.map((label) => ({ label }))
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
  const at = roleAt(document, after.role)
  const put = (path: Path, value: unknown) =>
    value === undefined ? document.deleteIn(path) : document.setIn(path, document.createNode(value))
  const changed = (field: keyof JobValues) => before[field] !== after[field]

  // A name that is new stands at the top.
  if (changed('name') && !document.has('name') && isMap(document.contents)) {
    document.contents.items.splice(1, 0, document.createPair('name', ''))
  }
  if (changed('name')) put(['name'], optional(after.name))
  if (changed('gpuModel')) put(['gpu_model'], optional(after.gpuModel))
  if (changed('limitHours')) put(['time_limit'], timeOf(after.limitHours))
  if (changed('retries')) put(['retries'], count(after.retries))
  if (changed('env')) put(['env'], envMap(after.env))
  if (changed('image')) put([...at, 'image'], optional(after.image))
  if (changed('command')) put([...at, 'command'], after.command === '' ? undefined : after.command)
  if (changed('tasks')) put([...at, 'tasks'], count(after.tasks))
  if (changed('cpus')) put([...at, 'cpus'], count(after.cpus))
  if (changed('memoryGib')) put([...at, 'memory'], sizeOf(after.memoryGib))
  if (changed('shmGib')) put([...at, 'shm'], sizeOf(after.shmGib))
  if (changed('gpus')) put([...at, 'gpus'], count(after.gpus))
  if (changed('ports')) put([...at, 'ports'], portList(after.ports))
  return textOf(document, isJson(file))
}

/** The file under another name, where the form can say it. */
export function renamed(file: string, name: string): string {
  const values = readJob(file)
  return values === null ? file : writeJob(file, values, { ...values, name })
}
