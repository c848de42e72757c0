import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView, lineNumbers } from '@codemirror/view'
import { useComputedColorScheme } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useEffect, useRef } from 'react'

import { codeLook, type CodeLanguage, LANGUAGES } from './code-look'

export interface CodeSide {
  label: string
  text: string
  language: CodeLanguage
}

interface Props {
  before: CodeSide
  after: CodeSide
  /** They are of two languages: every line differs, so single words are not marked. */
  foreign?: boolean
}

/** Two texts beside each other, or one below the other where there is no room, with what differs marked. */
export function CodeDiff({ before, after, foreign = false }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const dark = useComputedColorScheme('light') === 'dark'
  const wide = useMediaQuery('(min-width: 62em)', true, { getInitialValueInEffect: false })

  useEffect(() => {
    const parent = place.current
    if (parent === null) return undefined
    const reading = ({ label, language }: CodeSide) => [
      lineNumbers(),
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true' }),
      LANGUAGES[language],
      codeLook(dark),
    ]
    const view = wide
      ? new MergeView({
          parent,
          highlightChanges: !foreign,
          a: { doc: before.text, extensions: reading(before) },
          b: { doc: after.text, extensions: reading(after) },
        })
      : new EditorView({
          parent,
          doc: after.text,
          extensions: [
            reading(after),
            unifiedMergeView({
              original: before.text,
              mergeControls: false,
              highlightChanges: !foreign,
            }),
          ],
        })
    return () => view.destroy()
  }, [before, after, foreign, dark, wide])

  return <div ref={place} />
}
