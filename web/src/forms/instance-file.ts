// An instance as a file: what the form holds, in the words of job files. The form and the file are two ways to write the
// same request; comments and the order of a file outlive what is changed in the form.

import { type TFunction } from 'i18next'
import { Document, isMap, LineCounter, type Node, parseDocument } from 'yaml'

import type { CreateInstance, UseSecret } from '../api/types'
import type { CodeNote } from '../ui/code-editor'
import { GIB } from '../util/format'
import { quoteWord } from '../util/shell-words'
import type { CreateValues } from './create-instance'
import { asFormat, envOf, type FileFormat, gibOf, isJson, sizeOf, textOf } from './file-text'

type Translate = TFunction<'create'>

/** The keys of a file, and the form's field that each is. */
const FIELD_OF: Readonly<Record<string, keyof CreateValues>> = {
  name: 'name',
  image: 'image',
  cpus: 'cpus',
  memory: 'memoryGib',
  memory_bytes: 'memoryGib',
  shm: 'shmGib',
  shm_bytes: 'shmGib',
  gpus: 'gpus',
  gpu_model: 'gpuModel',
  cluster: 'cluster',
  pool: 'pool',
  env: 'env',
  command: 'command',
  auto_start: 'autoStart',
  secrets: 'secrets',
}

/** A request in the words of a file: as the API has it, but for sizes, which people write shorter. */
function wordsOf({ memory_bytes: memory, shm_bytes: shm, ...rest }: CreateInstance): Record<string, unknown> {
  const { name, image, cpus, gpus, ...more } = rest
  return {
    name,
    ...(image && { image }),
    cpus,
    memory: sizeOf(memory / GIB),
    ...(shm && { shm: sizeOf(shm / GIB) }),
    ...(gpus && { gpus }),
    ...more,
  }
}

/** The request as a file: `before` with what is otherwise now. */
export function writeInstance(request: CreateInstance, before = ''): string {
  const words = wordsOf(request)
  const found = parseDocument(before)
  const document = found.errors.length === 0 && isMap(found.contents) ? found : new Document({})
  const said: unknown = document.toJS()
  const old = typeof said === 'object' && said !== null ? said : {}
  for (const key of Object.keys(old)) if (!(key in words)) document.delete(key)
  for (const [key, value] of Object.entries(words)) {
    if (JSON.stringify(Reflect.get(old, key)) !== JSON.stringify(value)) {
      document.set(key, document.createNode(value))
    }
  }
  return textOf(document, isJson(before))
}

export function instanceAs(file: string, as: FileFormat): string | null {
  const document = parseDocument(file)
  return document.errors.length === 0 ? asFormat(document, file, as) : null
}

interface Read {
  /** What the form would hold; null while the file has mistakes. */
  values: CreateValues | null
  notes: CodeNote[]
}

/** What a file says, on top of what an instance is of itself. */
export function readInstance(file: string, otherwise: CreateValues, t: Translate): Read {
  const lines = new LineCounter()
  const document = parseDocument(file, { lineCounter: lines })
  const at = (offset = 0) => ({ line: lines.linePos(offset).line, column: lines.linePos(offset).col })
  if (document.errors.length > 0) {
    const note = (error: { pos: [number, number] }): CodeNote => ({
      level: 'error',
      ...at(error.pos[0]),
      message: t('file.unreadable'),
    })
    return { values: null, notes: document.errors.map(note) }
  }
  if (!isMap<{ value: unknown }, Node>(document.contents)) {
    return { values: null, notes: [{ level: 'error', line: 1, message: t('file.no_map') }] }
  }
  const plain: unknown = document.toJS()
  const values = { ...otherwise, name: '' }
  const notes: CodeNote[] = []
  for (const { key, value } of document.contents.items) {
    const word = String(key.value)
    const message = take(values, word, Reflect.get(Object(plain), word), document, t)
    const range = value && 'range' in value ? value.range : undefined
    if (message !== null) notes.push({ level: 'error', ...at(range?.[0]), message })
  }
  return { values: notes.length === 0 ? values : null, notes }
}

/** Takes one setting over into the form; says what is wrong with it. */
function take(
  values: CreateValues,
  key: string,
  value: unknown,
  document: Document,
  t: Translate,
): string | null {
  switch (FIELD_OF[key]) {
    case undefined:
      return t('file.unknown', { key })
    case 'name':
    case 'image':
    case 'gpuModel':
    case 'cluster':
    case 'pool':
      if (typeof value !== 'string' && typeof value !== 'number') return t('file.text', { key })
      values[FIELD_OF[key]] = String(value)
      return null
    case 'cpus':
    case 'gpus':
      if (typeof value !== 'number') return t('number.needed')
      values[FIELD_OF[key]] = value
      return null
    case 'memoryGib':
    case 'shmGib':
      values[FIELD_OF[key]] = gibOf(value)
      return gibOf(value) === '' ? t('file.size') : null
    case 'autoStart':
      values.autoStart = value === true
      return typeof value === 'boolean' ? null : t('file.switch')
    case 'env':
      values.env = envOf(document)
      return isMap(document.get('env')) ? null : t('file.map')
    case 'command':
      values.command = Array.isArray(value)
        ? value.map((word) => quoteWord(String(word))).join(' ')
        : String(value)
      return Array.isArray(value) || typeof value === 'string' ? null : t('file.command')
    case 'secrets':
      values.secrets = Array.isArray(value) ? value.map(secretOf) : []
      return Array.isArray(value) && value.map(secretOf).every(({ name }) => name !== '')
        ? null
        : t('file.secrets')
    default:
      return null
  }
}

/** A secret by its name alone, or with how it is used. */
function secretOf(value: unknown): UseSecret {
  if (typeof value === 'string') return { name: value }
  const { name, env, file } = { name: '', env: undefined, file: undefined, ...Object(value) }
  return {
    name: String(name),
    ...(typeof env === 'string' && { env }),
    ...(file === true && { file: true }),
  }
}

/** What the form finds wrong, at the lines of the file that say it. */
export function notesAt(errors: Readonly<Record<string, string>>, file: string): CodeNote[] {
  const lines = file.split('\n')
  return Object.entries(errors).map(([path, message]) => {
    const [field, index] = path.split('.')
    const keys = Object.keys(FIELD_OF).filter((key) => FIELD_OF[key] === field)
    const found = lines.findIndex((line) => keys.some((key) => new RegExp(`^\\s*"?${key}"?\\s*:`).test(line)))
    return {
      level: 'error',
      line: found === -1 ? 1 : found + 1 + (index === undefined ? 0 : Number(index) + 1),
      message,
    }
  })
}
