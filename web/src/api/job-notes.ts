// What is said about job files, by `code` and `params`; the gateway's own words where a code is unknown here.

import type { TFunction } from 'i18next'

import type { JobNote } from './types'

type Translate = TFunction<'notes'>

export interface NoteText {
  what: string
  hint?: string
}

/** The field as people write it: `taskRoles[0].command`. */
export function fieldOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((field, part) => {
      if (/^\d+$/.test(part)) return `${field}[${part}]`
      return field === '' ? part : `${field}.${part}`
    }, '')
}

/** The sentence that fits the values that there are. */
function whatKey({ code, params = {} }: JobNote): string {
  if (code === 'out_of_range' && params.most === undefined) return 'out_of_range_least'
  if (code === 'unsupported' && params.value !== undefined) return 'unsupported_value'
  return code
}

function hintKey({ code, params = {} }: JobNote): string {
  if (code === 'ignored') return params.why ?? ''
  if (code === 'unknown_key' && params.nearest === undefined) return ''
  if (/^(outside_storage|unknown_value)$/.test(code) && params.known === undefined) return `${code}_none`
  return code
}

export function noteText(note: JobNote, t: Translate): NoteText {
  const { of = '', expected = '', found = '', ...rest } = note.params ?? {}
  const values = {
    ...rest,
    field: fieldOf(note.pointer),
    of: t(`thing.${of}`, { defaultValue: of }),
    rule: t(`rule.${of}`, { defaultValue: rest.rule ?? '' }),
    expected: t(`kind.${expected}`, { defaultValue: expected }),
    found: t(`kind.${found}`, { defaultValue: found }),
  }
  const known = t(`what.${note.code}`, { defaultValue: '', skipInterpolation: true }) !== ''
  if (!known) return { what: note.message, hint: note.hint ?? undefined }
  return {
    what: t(`what.${whatKey(note)}`, { ...values, defaultValue: note.message }),
    hint: t(`hint.${hintKey(note)}`, { ...values, defaultValue: '' }) || undefined,
  }
}
