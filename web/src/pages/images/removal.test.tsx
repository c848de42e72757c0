// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import type { SavedImage } from '../../api/types'
import { resources as en } from '../../i18n/en'
import { theme } from '../../theme'
import { isOffered } from './actions'
import { RemoveImage } from './removal'

const IMAGE: SavedImage = {
  id: 'img_1',
  user: 'alice',
  name: 'train',
  tag: 'v1',
  message: '',
  parent: 'base',
  added_bytes: 1,
  layers: 1,
  share: 'me',
  platform: false,
  proposed: false,
  state: { state: 'ready' },
  used_by: [],
}
const SAVING: SavedImage = { ...IMAGE, state: { state: 'saving', step: 'packing', done_bytes: 1 } }

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', defaultNS: 'common', resources: { en } }))
afterEach(cleanup)

let cache = new QueryClient()
beforeEach(() => {
  cache = new QueryClient()
})

/** How often the gateway was asked to delete; there is none that answers. */
const asked = () => cache.getMutationCache().getAll().length

function page(saved: SavedImage) {
  return (
    <QueryClientProvider client={cache}>
      <MantineProvider theme={theme} env="test">
        <RemoveImage saved={saved} />
      </MantineProvider>
    </QueryClientProvider>
  )
}

test('an image that is in use cannot be deleted, and the dialog says by whom', async () => {
  render(page({ ...IMAGE, used_by: ['alice/other', 'bob'] }))
  await userEvent.click(screen.getByRole('button', { name: 'Delete train' }))
  await screen.findByText('alice/other')
  const confirm = screen.getByRole('button', { name: 'Delete' })
  expect(confirm.getAttribute('aria-disabled')).toBe('true')
  await userEvent.click(confirm)
  expect(asked()).toBe(0)
})

test('a save is cancelled in its own words', async () => {
  render(page(SAVING))
  await userEvent.click(screen.getByRole('button', { name: 'Cancel saving train' }))
  await screen.findByText('Cancel saving train:v1?')
  await waitFor(() => expect(document.activeElement?.textContent).toBe('Go on saving'))
  await userEvent.click(screen.getByRole('button', { name: 'Cancel the save' }))
  await waitFor(() => expect(asked()).toBe(1))
})

test('who was about to cancel a save does not delete the image that it became', async () => {
  const { rerender } = render(page(SAVING))
  await userEvent.click(screen.getByRole('button', { name: 'Cancel saving train' }))
  await screen.findByText('Cancel saving train:v1?')
  rerender(page(IMAGE))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
  screen.getByRole('button', { name: 'Delete train' })
})

test('the platform’s list is offered only for what the gateway takes', () => {
  expect(isOffered(IMAGE, 'root')).toBe(false)
  expect(isOffered(IMAGE, 'alice')).toBe(true)
  expect(isOffered({ ...IMAGE, share: 'group' }, 'root')).toBe(false)
  expect(isOffered({ ...IMAGE, share: 'everyone' }, 'root')).toBe(true)
  expect(isOffered({ ...IMAGE, proposed: true }, 'root')).toBe(true)
  expect(isOffered({ ...IMAGE, platform: true }, 'root')).toBe(true)
})
