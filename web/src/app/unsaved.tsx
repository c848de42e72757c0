import { Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { ConfirmDialog } from '../ui/confirm-dialog'
import { paths } from '../util/path-builder'

/** Asks whoever leaves a page on which they have typed something that is nowhere else. */
export function Unsaved({ when }: { when: boolean }) {
  const { t } = useTranslation()
  const { status, proceed, reset } = useBlocker({
    // Tabs and searches of the same page keep it; who signs out means it.
    shouldBlockFn: ({ current, next }) =>
      when && next.pathname !== current.pathname && next.pathname !== paths.signIn(),
    enableBeforeUnload: () => when,
    withResolver: true,
  })
  return (
    <ConfirmDialog
      opened={status === 'blocked'}
      title={t('unsaved.title')}
      confirm={t('unsaved.leave')}
      cancel={t('unsaved.stay')}
      onConfirm={() => proceed?.()}
      onClose={() => reset?.()}
    >
      <Text size="sm">{t('unsaved.text')}</Text>
    </ConfirmDialog>
  )
}
