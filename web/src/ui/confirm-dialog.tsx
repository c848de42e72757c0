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
  /** Instead of Cancel, where what is asked is a cancelling itself. */
  cancel?: string
  /** Why it cannot be done after all. */
  reason?: string
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
  const { opened, title, children, confirm, cancel, reason, busy, harmless, instead, onConfirm, onClose } =
    props
  const { t } = useTranslation()
  return (
    <Dialog opened={opened} onClose={onClose} title={title}>
      <Stack gap="sm">
        {children}
        <Group justify="flex-end" mt="sm">
          <Button variant="default" data-autofocus onClick={onClose}>
            {cancel ?? t('cancel')}
          </Button>
          {instead}
          <ReasonedButton
            label={confirm}
            color={harmless ? undefined : 'red'}
            reason={reason}
            busy={busy}
            onClick={onConfirm}
          />
        </Group>
      </Stack>
    </Dialog>
  )
}
