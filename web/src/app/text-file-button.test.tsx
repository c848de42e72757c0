// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'

import { resources as en } from '../i18n/en'
import { MIB } from '../util/format'
import { TextFileButton } from './text-file-button'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', defaultNS: 'common', resources: { en } }))
afterEach(cleanup)

function chooser() {
  const onText = vi.fn<(text: string) => void>()
  const { container } = render(
    <MantineProvider env="test">
      <Notifications />
      <TextFileButton label="Import" onText={onText} />
    </MantineProvider>,
  )
  const input = container.querySelector('input')
  if (input === null) throw new Error('there is nothing to choose with')
  return { input, onText }
}

test('a file that was chosen leaves room to choose it again', async () => {
  const { input, onText } = chooser()
  await userEvent.upload(input, new File(['berth: 1'], 'job.yaml'))
  await waitFor(() => expect(onText).toHaveBeenCalledWith('berth: 1'))
  // A browser says nothing of a choice that is what it was before.
  expect(input.value).toBe('')
})

test('a file that nobody would take is not read', async () => {
  const { input, onText } = chooser()
  await userEvent.upload(input, new File(['x'.repeat(MIB + 1)], 'weights.pt'))
  await screen.findByText('The file weights.pt is too large')
  expect(onText).not.toHaveBeenCalled()
})
