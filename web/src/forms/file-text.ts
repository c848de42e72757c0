// What the files of jobs and of instances have in common: YAML or JSON, sizes such as `8G`, variables as a map.

import { type Document, isMap, isScalar, stringify } from 'yaml'

import { GIB, MIB } from '../util/format'

export type FileFormat = 'yaml' | 'json'

export interface EnvRow {
  /** Keeps a row's inputs while others come and go. */
  id: number
  key: string
  value: string
}

export function isJson(file: string): boolean {
  return file.trimStart().startsWith('{')
}

export function textOf(document: Document, json: boolean): string {
  return json ? `${JSON.stringify(document.toJS(), null, 2)}\n` : document.toString({ lineWidth: 0 })
}

/** The same file as YAML or as JSON; untouched if it is that already. */
export function asFormat(document: Document, file: string, as: FileFormat): string {
  if ((as === 'json') === isJson(file)) return file
  return as === 'json' ? textOf(document, true) : stringify(document.toJS(), { lineWidth: 0 })
}

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i
const UNIT: Record<string, number> = { '': 1, k: 1024, m: MIB, g: GIB, t: 1024 * GIB }

/** `8G`, `512M` in GiB; empty for what the form cannot say. */
export function gibOf(value: unknown): number | string {
  const [, number, unit = ''] = SIZE.exec(String(value ?? '')) ?? []
  return number === undefined ? '' : (Number(number) * (UNIT[unit.toLowerCase()] ?? 1)) / GIB
}

export function sizeOf(gib: number | string): string | undefined {
  if (gib === '' || !Number.isFinite(Number(gib))) return undefined
  const mib = Math.round(Number(gib) * 1024)
  return mib > 0 && mib % 1024 === 0 ? `${mib / 1024}G` : `${mib}M`
}

export function numberOf(value: unknown): number | string {
  return typeof value === 'number' ? value : ''
}

export function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** A value as it was typed: `1.10` is no number here. */
function sourceOf(node: unknown): string {
  return isScalar(node) ? (node.source ?? String(node.value)) : ''
}

export function envOf(document: Document): EnvRow[] {
  const map = document.get('env')
  if (!isMap(map)) return []
  return map.items.map(({ key, value }, id) => ({ id, key: sourceOf(key), value: sourceOf(value) }))
}
