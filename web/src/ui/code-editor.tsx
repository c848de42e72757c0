import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef } from 'react'

import { codeLook, type CodeLanguage, LANGUAGES } from './code-look'

/** A mistake or a remark, at its line. */
export interface CodeNote {
  level: 'error' | 'warning'
  /** From 1; without one it is about the first line. */
  line?: number
  column?: number
  message: string
}

interface Props {
  label: string
  describedBy?: string
  language: CodeLanguage
  text: string
  notes: readonly CodeNote[]
  onChange: (text: string) => void
}

/** As tall as a job file, and no taller than the window. */
const SIZE = EditorView.theme({ '.cm-scroller': { minHeight: '320px', maxHeight: '70vh' } })

function diagnostics(state: EditorState, notes: readonly CodeNote[]): Diagnostic[] {
  return notes.map(({ level, line = 1, column = 1, message }) => {
    const at = state.doc.line(Math.min(Math.max(1, line), state.doc.lines))
    return {
      from: Math.min(at.from + Math.max(0, column - 1), at.to),
      to: at.to,
      severity: level,
      message,
    }
  })
}

/** An editor for YAML and JSON. What it holds is `text`; what is wrong with it stands at its line. */
export function CodeEditor({ label, describedBy, language, text, notes, onChange }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const told = useRef(onChange)
  const first = useRef(text)
  const parts = useRef({ language: new Compartment(), look: new Compartment(), names: new Compartment() })
  const dark = useComputedColorScheme('light') === 'dark'

  useEffect(() => {
    told.current = onChange
  }, [onChange])

  useEffect(() => {
    if (place.current === null) return undefined
    const editor = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          lineNumbers(),
          history(),
          bracketMatching(),
          highlightActiveLine(),
          lintGutter(),
          EditorView.lineWrapping,
          SIZE,
          // Tab indents; Escape first, then Tab leaves, as everywhere in CodeMirror.
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          parts.current.language.of([]),
          parts.current.look.of([]),
          parts.current.names.of([]),
          EditorView.contentAttributes.of({ spellcheck: 'false' }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) told.current(update.state.doc.toString())
          }),
        ],
      }),
    })
    view.current = editor
    return () => editor.destroy()
  }, [])

  // Another language on the screen must not make another editor: what was typed is in this one.
  useEffect(() => {
    const names = { 'aria-label': label, ...(describedBy && { 'aria-describedby': describedBy }) }
    view.current?.dispatch({
      effects: parts.current.names.reconfigure(EditorView.contentAttributes.of(names)),
    })
  }, [label, describedBy])

  useEffect(() => {
    view.current?.dispatch({
      effects: [
        parts.current.language.reconfigure(LANGUAGES[language]),
        parts.current.look.reconfigure(codeLook(dark)),
      ],
    })
  }, [language, dark])

  useEffect(() => {
    const editor = view.current
    // Written by somebody else than the keyboard: another format, an imported file.
    if (editor && editor.state.doc.toString() !== text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } })
    }
  }, [text])

  useEffect(() => {
    const editor = view.current
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnostics(editor.state, notes)))
  }, [notes])

  return <div ref={place} />
}
