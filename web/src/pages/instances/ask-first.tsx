import { Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../../api/session'
import { imagesQuery } from '../../api/site'
import type { Instance } from '../../api/types'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { TimeAgo } from '../../ui/time-ago'
import { lastSaved, savesOf } from '../../util/saves-of'

/** What ends something, so that nobody does it by a slip of the hand. */
export type Ending = 'stop' | 'restart' | 'delete'

interface Props {
  instance: Instance
  ending: Ending
  opened: boolean
  busy: boolean
  onConfirm: () => void
  /** Saves an image first. */
  onSave: () => void
  onClose: () => void
}

export function AskFirst({ instance, ending, opened, busy, onConfirm, onSave, onClose }: Props) {
  const { t } = useTranslation('instances')
  return (
    <ConfirmDialog
      opened={opened}
      title={t(`ask.${ending}`, { name: instance.name })}
      confirm={t(`action.${ending}`)}
      busy={busy}
      onConfirm={onConfirm}
      onClose={onClose}
      instead={
        instance.actions.includes('save') && (
          <Button variant="default" onClick={onSave}>
            {t(ending === 'stop' ? 'ask.save_and_stop' : 'ask.save_first')}
          </Button>
        )
      }
    >
      <WhatBecomesOfIt instance={instance} ending={ending} />
    </ConfirmDialog>
  )
}

function WhatBecomesOfIt({ instance, ending }: Pick<Props, 'instance' | 'ending'>) {
  const { t } = useTranslation('instances')
  const { data: me } = useQuery(meQuery)
  const own = instance.user === me?.name
  const runs = instance.status.state === 'running'
  return (
    <>
      {!own && <Text size="sm">{t('ask.somebodys', { user: instance.user })}</Text>}
      {ending === 'delete' ? (
        <>
          <Text size="sm">{t('delete.lost')}</Text>
          <Text size="sm">{t('delete.kept')}</Text>
        </>
      ) : (
        <>
          <Text size="sm">{t(runs ? 'ask.ends' : 'ask.not_started')}</Text>
          <Text size="sm">{t('ask.files_stay')}</Text>
        </>
      )}
      {own && <LastSave instance={instance} />}
    </>
  )
}

/** Whether what is about to end is in an image. */
function LastSave({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const { data: images } = useQuery(imagesQuery)
  if (!images) return null
  const last = lastSaved(savesOf(images, instance))
  if (!last) return <Text size="sm">{t('ask.never_saved')}</Text>
  return (
    <Text size="sm" className="breakable">
      {t('ask.last_saved', { name: `${last.saved.name}:${last.saved.tag}` })} <TimeAgo at={last.created_at} />
    </Text>
  )
}
