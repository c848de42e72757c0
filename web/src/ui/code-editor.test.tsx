// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test } from 'vitest'

import { CodeEditor } from './code-editor'

afterEach(cleanup)

function editor(label: string, text: string) {
  return (
    <MantineProvider>
      <CodeEditor label={label} language="yaml" text={text} notes={[]} onChange={() => undefined} />
    </MantineProvider>
  )
}

test('another language on the screen changes the label and nothing that was typed', () => {
  const { rerender } = render(editor('Job file', 'name: a'))
  rerender(editor('Job file', 'name: typed'))
  const before = screen.getByLabelText('Job file')
  rerender(editor('任务文件', 'name: typed'))
  const after = screen.getByLabelText('任务文件')
  expect(after).toBe(before)
  expect(after.textContent).toContain('name: typed')
})
