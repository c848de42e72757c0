// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react'
import { useState, useTransition } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { useTyped } from './use-typed'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  cleanup()
  vi.useRealTimers()
})

/** As the router does it: what is put arrives in a transition. */
function Search({ told }: { told: (text: string) => void }) {
  const [address, setAddress] = useState('')
  const [, begin] = useTransition()
  const [typed, type] = useTyped(address, (text) => {
    told(text)
    begin(() => setAddress(text))
  })
  return (
    <>
      <input aria-label="find" value={typed} onChange={(event) => type(event.currentTarget.value)} />
      <button type="button" aria-label="clear" onClick={() => setAddress('')} />
    </>
  )
}

const input = () => screen.getByLabelText<HTMLInputElement>('find')
const write = (value: string) => fireEvent.change(input(), { target: { value } })
const pause = () => act(() => vi.advanceTimersByTime(400))

test('what is typed stays in the input, and reaches the address when the typing pauses', () => {
  const told = vi.fn<(text: string) => void>()
  render(<Search told={told} />)
  write('n')
  write('ni')
  expect(input().value).toBe('ni')
  expect(told).not.toHaveBeenCalled()
  pause()
  expect(told.mock.calls).toEqual([['ni']])
  write('ni h')
  expect(input().value).toBe('ni h')
  pause()
  fireEvent.click(screen.getByLabelText('clear'))
  expect(input().value).toBe('')
})
