// How code looks, in the editor and beside another text.

import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

export type CodeLanguage = 'yaml' | 'json' | 'text'

export const LANGUAGES = { yaml: yaml(), json: json(), text: [] } as const

/** Readable on the dark ground, where the ordinary style is not. */
const DARK_STYLE = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: '#74c0fc' },
  { tag: [tags.string, tags.special(tags.string)], color: '#8ce99a' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: '#ffc078' },
  { tag: tags.comment, color: '#adb5bd', fontStyle: 'italic' },
])

export function codeLook(dark: boolean) {
  return [
    EditorView.theme(
      {
        '&': {
          border: '1px solid var(--mantine-color-default-border)',
          borderRadius: 'var(--mantine-radius-md)',
          backgroundColor: 'var(--mantine-color-body)',
          fontSize: '13px',
        },
        '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)' },
        '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)' },
        '.cm-gutters': {
          backgroundColor: 'transparent',
          border: 'none',
          color: 'var(--mantine-color-dimmed)',
        },
        '.cm-activeLine': { backgroundColor: dark ? '#ffffff0d' : '#0000000a' },
      },
      { dark },
    ),
    syntaxHighlighting(dark ? DARK_STYLE : defaultHighlightStyle),
  ]
}
