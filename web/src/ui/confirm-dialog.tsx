import { Button, Group, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { Dialog } from './dialog'
import { ReasonedButton } from './reasoned-button'

interface Props {
  opened: boolean
  /** Names the object. */
  title: string
  /** What is kept and what is lost. */
  children: ReactNode
  confirm: string
  busy?: boolean
  /** Nothing is lost by it. */
  harmless?: boolean
  /** What else could be done, between Cancel and the act. */
  instead?: ReactNode
  onConfirm: () => void
  onClose: () => void
}

/** Asks before something is lost. Cancel has the focus: a hasty Enter does no harm. */
export function ConfirmDialog(props: Props) {
  const { opened, title, children, confirm, busy, harmless, instead, onConfirm, onClose } = props
  const { t } = useTranslation()
  return (
    <Dialog opened={opened} onClose={onClose} title={title}>
      <Stack gap="sm">
        {children}
        <Group justify="flex-end" mt="sm">
          <Button variant="default" data-autofocus onClick={onClose}>
            {t('cancel')}
          </Button>
          {instead}
          <ReasonedButton
            label={confirm}
            color={harmless ? undefined : 'red'}
            busy={busy}
            onClick={onConfirm}
          />
        </Group>
      </Stack>
    </Dialog>
  )
}
