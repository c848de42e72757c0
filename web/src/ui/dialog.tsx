import { Modal } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

interface Props {
  opened: boolean
  title: string
  onClose: () => void
  /** It closes only by what is in it. */
  stays?: boolean
  /** Somebody types in it: a stray click beside it must not throw that away. */
  typed?: boolean
  children: ReactNode
}

export function Dialog({ opened, title, onClose, stays, typed, children }: Props) {
  const { t } = useTranslation()
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      closeOnClickOutside={!stays && !typed}
      closeOnEscape={!stays}
      withCloseButton={!stays}
      closeButtonProps={{ 'aria-label': t('close') }}
      // Mantine draws the head of a dialog as <header>, which outside a section would be the banner of the page.
      attributes={{ header: { role: 'none' } }}
      styles={{ title: { fontWeight: 650, overflowWrap: 'anywhere' } }}
    >
      {children}
    </Modal>
  )
}
