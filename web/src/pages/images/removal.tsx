import { List, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble } from '../../app/trouble'
import { deleteImage, refetchImages } from '../../api/images'
import type { SavedImage } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { IconClose, IconTrash } from '../../ui/icons'

interface Props {
  saved: SavedImage
  compact?: boolean
}

/** Deletes an image, or gives up one that is still being saved: the gateway has one request for both. */
export function RemoveImage({ saved, compact }: Props) {
  return saved.state.state === 'saving' ? (
    <CancelSave saved={saved} compact={compact} />
  ) : (
    <DeleteImage saved={saved} compact={compact} />
  )
}

function useRemoval(saved: SavedImage, done: string, close: () => void) {
  const cache = useQueryClient()
  return useMutation({
    mutationFn: () => deleteImage(saved.id),
    onSuccess: () => showDone(done),
    onError: showTrouble,
    onSettled: () => {
      close()
      return refetchImages(cache)
    },
  })
}

/** It is gone with its question as soon as the save is over: whoever gives up a save does not mean to delete an image. */
function CancelSave({ saved, compact }: Props) {
  const { t } = useTranslation('images')
  const [asked, setAsked] = useState(false)
  const close = () => setAsked(false)
  const name = `${saved.name}:${saved.tag}`
  const removal = useRemoval(saved, t('cancel_save.done', { name }), close)
  return (
    <>
      <ActionButton
        compact={compact}
        danger
        label={t('cancel_save.label', { name: saved.name })}
        icon={IconClose}
        onClick={() => setAsked(true)}
      />
      <ConfirmDialog
        opened={asked}
        title={t('cancel_save.title', { name })}
        confirm={t('cancel_save.confirm')}
        cancel={t('cancel_save.go_on')}
        busy={removal.isPending}
        onConfirm={() => removal.mutate()}
        onClose={close}
      >
        <Text size="sm">{t('cancel_save.text')}</Text>
      </ConfirmDialog>
    </>
  )
}

function DeleteImage({ saved, compact }: Props) {
  const { t } = useTranslation('images')
  const cache = useQueryClient()
  const [asked, setAsked] = useState(false)
  const close = () => setAsked(false)
  const { name, tag, used_by: users = [] } = saved
  const removal = useRemoval(saved, t('deleted', { name }), close)
  const ask = () => {
    setAsked(true)
    // Who uses it is told by no event.
    void refetchImages(cache)
  }
  return (
    <>
      <ActionButton compact={compact} danger label={t('delete', { name })} icon={IconTrash} onClick={ask} />
      <ConfirmDialog
        opened={asked}
        title={t('delete_title', { name: `${name}:${tag}` })}
        confirm={t('delete_confirm')}
        reason={users.length > 0 ? t('in_use') : undefined}
        busy={removal.isPending}
        onConfirm={() => removal.mutate()}
        onClose={close}
      >
        {users.length === 0 ? (
          <Text size="sm">{t('delete_text')}</Text>
        ) : (
          <>
            <Text size="sm">{t('in_use')}</Text>
            <List size="sm">
              {users.map((user) => (
                <List.Item key={user} className="breakable">
                  {user}
                </List.Item>
              ))}
            </List>
          </>
        )}
      </ConfirmDialog>
    </>
  )
}
