import { Input, Skeleton, Stack } from '@mantine/core'
import { lazy, Suspense, useId } from 'react'

import type { CodeNote } from '../ui/code-editor'
import type { CodeLanguage } from '../ui/code-look'

const CodeEditor = lazy(async () => ({ default: (await import('../ui/code-editor')).CodeEditor }))

interface Props {
  label: string
  help: string
  language: CodeLanguage
  text: string
  notes: readonly CodeNote[]
  onChange: (text: string) => void
}

/** A file as text, with what is wrong with it at its lines. */
export function CodeField({ label, help, ...editor }: Props) {
  const id = useId()
  return (
    <Stack gap={4}>
      <Input.Label labelElement="div">{label}</Input.Label>
      <Input.Description id={id}>{help}</Input.Description>
      <Suspense fallback={<Skeleton className="after-a-moment" height={340} />}>
        <CodeEditor label={label} describedBy={id} {...editor} />
      </Suspense>
    </Stack>
  )
}
