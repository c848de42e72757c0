// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import i18next from 'i18next'
import { type ReactNode, useState } from 'react'
import { initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'

import { resources as en } from '../i18n/en'
import { theme } from '../theme'
import { ignoreComposingEnter } from '../util/composing'
import { ActionButton } from './action-button'
import { ConfirmDialog } from './confirm-dialog'
import { IconPlay } from './icons'
import { Records } from './records'
import { useKeys } from './use-keys'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', defaultNS: 'common', resources: { en } }))
afterEach(cleanup)

function show(children: ReactNode) {
  return render(
    <MantineProvider theme={theme} env="test">
      {children}
    </MantineProvider>,
  )
}

test('a dialog that destroys has its focus on Cancel', async () => {
  const confirm = vi.fn()
  const close = vi.fn()
  show(
    <ConfirmDialog opened title="Delete train_1?" confirm="Delete" onConfirm={confirm} onClose={close}>
      {null}
    </ConfirmDialog>,
  )
  await waitFor(() => expect(document.activeElement?.textContent).toBe('Cancel'))
  await userEvent.keyboard('{Enter}')
  expect(close).toHaveBeenCalledOnce()
  expect(confirm).not.toHaveBeenCalled()
})

test('a disabled action can be reached by keyboard, says why, and does nothing', async () => {
  const act = vi.fn()
  show(<ActionButton label="Start" icon={IconPlay} reason="It runs already" onClick={act} />)
  await userEvent.tab()
  const button = screen.getByRole('button', { name: 'Start' })
  expect(document.activeElement).toBe(button)
  expect(button.getAttribute('aria-disabled')).toBe('true')
  await screen.findByText('It runs already')
  await userEvent.keyboard('{Enter}')
  expect(act).not.toHaveBeenCalled()
})

test('the Enter of an input method does not reach the form', () => {
  const seen = vi.fn()
  show(
    <form onKeyDownCapture={ignoreComposingEnter}>
      <input aria-label="name" onKeyDown={seen} />
    </form>,
  )
  const input = screen.getByLabelText('name')
  // `fireEvent` answers false when the default, here the submit, was prevented.
  expect(fireEvent.keyDown(input, { key: 'Enter', isComposing: true })).toBe(false)
  expect(fireEvent.keyDown(input, { key: 'Enter', keyCode: 229 })).toBe(false)
  expect(seen).not.toHaveBeenCalled()
  expect(fireEvent.keyDown(input, { key: 'Enter' })).toBe(true)
  expect(seen).toHaveBeenCalledOnce()
})

function Opener() {
  const [open, setOpen] = useState(false)
  return (
    <button type="button" onClick={() => setOpen(true)}>
      {open ? 'opened' : 'open'}
    </button>
  )
}

/** As pages do it: their columns are made anew with each drawing. */
function OneRow({ size }: { size: number }) {
  return (
    <Records
      label="images"
      rows={[{ id: 'one', size }]}
      rowId={(row) => row.id}
      heading="id"
      columns={[
        { id: 'id', header: 'image', cell: (row) => row.id },
        { id: 'size', header: 'size', cell: (row) => row.size },
      ]}
      actions={() => <Opener />}
    />
  )
}

test('what is open in a row stays open while news arrive', async () => {
  const { rerender } = show(<OneRow size={1} />)
  await userEvent.click(screen.getByRole('button', { name: 'open' }))
  rerender(
    <MantineProvider theme={theme} env="test">
      <OneRow size={2} />
    </MantineProvider>,
  )
  await screen.findByText('2')
  screen.getByRole('button', { name: 'opened' })
})

test('numbers are sorted as numbers, names as people count', () => {
  const rows = [
    { name: 'run10', hours: 1.9 },
    { name: 'run2', hours: 1.25 },
    { name: 'run1', hours: 12 },
  ]
  const order = (sort: string) => {
    const { unmount } = show(
      <Records
        label="usage"
        rows={rows}
        rowId={(row) => row.name}
        heading="name"
        sort={sort}
        onSort={() => undefined}
        columns={[
          { id: 'name', header: 'name', cell: (row) => row.name, sortBy: (row) => row.name },
          { id: 'hours', header: 'hours', cell: (row) => row.hours, sortBy: (row) => row.hours },
        ]}
      />,
    )
    const names = screen.getAllByRole('rowheader').map((cell) => cell.textContent)
    unmount()
    return names
  }
  expect(order('hours')).toEqual(['run2', 'run10', 'run1'])
  expect(order('-hours')).toEqual(['run1', 'run10', 'run2'])
  expect(order('name')).toEqual(['run1', 'run2', 'run10'])
})

function Keys({ acts, asks = false }: { acts: Record<string, () => void>; asks?: boolean }) {
  useKeys(acts, true)
  return (
    <>
      <input aria-label="name" />
      {asks && <div role="dialog" aria-label="question" />}
    </>
  )
}

test('single keys and pairs act, but not while somebody types or is asked something', async () => {
  const acts = { 'g i': vi.fn(), i: vi.fn(), c: vi.fn() }
  const { rerender } = render(<Keys acts={acts} />)
  await userEvent.keyboard('gi')
  expect([acts['g i'].mock.calls.length, acts.i.mock.calls.length]).toEqual([1, 0])
  await userEvent.keyboard('c')
  expect(acts.c).toHaveBeenCalledOnce()
  await userEvent.keyboard('{Control>}c{/Control}')
  fireEvent.keyDown(document.body, { key: 'c', isComposing: true })
  await userEvent.type(screen.getByLabelText('name'), 'cgi')
  await userEvent.click(document.body)
  rerender(<Keys acts={acts} asks />)
  await userEvent.keyboard('c')
  expect(acts.c).toHaveBeenCalledOnce()
  expect(acts['g i']).toHaveBeenCalledOnce()
})
