// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'

import { meQuery } from '../../api/session'
import { imagesQuery } from '../../api/site'
import type { Image, Instance } from '../../api/types'
import { resources as en } from '../../i18n/en'
import { theme } from '../../theme'
import { AskFirst } from './ask-first'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', defaultNS: 'common', resources: { en } }))
afterEach(cleanup)

const INSTANCE: Instance = {
  id: 'ins_1',
  name: 'train',
  slug: 'train',
  user: 'alice',
  image: 'base',
  cpus: 1,
  memory_bytes: 1,
  shm_bytes: 1,
  gpus: 0,
  env: {},
  command: [],
  goal: 'running',
  status: { state: 'running', since: '2026-01-02T00:00:00Z' },
  actions: ['stop', 'save'],
  created_at: '2026-01-02T00:00:00Z',
}

function saved(tag: string, at: string): Image {
  return {
    reference: `train:${tag}`,
    size_bytes: 1,
    created_at: at,
    default: false,
    saved: {
      id: `img_${tag}`,
      user: 'alice',
      name: 'train',
      tag,
      message: '',
      parent: 'base',
      added_bytes: 1,
      layers: 1,
      share: 'me',
      platform: false,
      proposed: false,
      state: { state: 'ready' },
      instance: 'train',
    },
  }
}

function show(instance: Instance, me: string, images: Image[] = []) {
  const cache = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } })
  const role = me === instance.user ? 'user' : 'admin'
  cache.setQueryData(meQuery.queryKey, { name: me, role, group: 'lab', must_change_password: false })
  cache.setQueryData(imagesQuery.queryKey, images)
  const acts = { onConfirm: vi.fn(), onSave: vi.fn(), onClose: vi.fn() }
  render(
    <QueryClientProvider client={cache}>
      <MantineProvider theme={theme} env="test">
        <AskFirst instance={instance} ending="stop" opened busy={false} {...acts} />
      </MantineProvider>
    </QueryClientProvider>,
  )
  return acts
}

test('a stop says what ends and what stays, and a hasty Enter does not stop', async () => {
  const { onConfirm, onSave, onClose } = show(INSTANCE, 'alice')
  await screen.findByText('Stop train?')
  screen.getByText('Everything that runs in it ends now: terminals, notebooks, training.')
  screen.getByText('All files stay, in /userhome and elsewhere.')
  screen.getByText('Last image saved: never.')
  await waitFor(() => expect(document.activeElement?.textContent).toBe('Cancel'))
  await userEvent.keyboard('{Enter}')
  expect(onClose).toHaveBeenCalledOnce()
  await userEvent.click(screen.getByRole('button', { name: 'Save image and stop' }))
  expect(onSave).toHaveBeenCalledOnce()
  expect(onConfirm).not.toHaveBeenCalled()
  await userEvent.click(screen.getByRole('button', { name: 'Stop' }))
  expect(onConfirm).toHaveBeenCalledOnce()
})

test('the last image is that of this very instance, not of an earlier one of its name', async () => {
  show(INSTANCE, 'alice', [
    saved('old', '2026-01-01T00:00:00Z'),
    saved('first', '2026-01-03T00:00:00Z'),
    saved('second', '2026-01-04T00:00:00Z'),
  ])
  await screen.findByText(/Last image saved: train:second/)
  cleanup()
  show(INSTANCE, 'alice', [saved('old', '2026-01-01T00:00:00Z')])
  await screen.findByText('Last image saved: never.')
})

test('an admin is told whose it is', async () => {
  show({ ...INSTANCE, actions: ['stop', 'delete'] }, 'root')
  await screen.findByText('It belongs to alice, who may be working in it.')
  expect(screen.queryByRole('button', { name: /Save/ })).toBeNull()
})
