import { Button, Group, Select, Stack, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { changeImage, deleteImage, refetchImages } from '../../api/images'
import { meQuery } from '../../api/session'
import type { Image, Share } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { Dialog } from '../../ui/dialog'
import { IconPlus, IconTrash, IconUsers } from '../../ui/icons'
import { paths } from '../../util/path-builder'

export const SHARES: readonly Share[] = ['me', 'group', 'everyone']

export function ImageActions({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  const [asked, setAsked] = useState<'share' | 'delete' | null>(null)
  const close = () => setAsked(null)
  const { saved } = image
  const own = saved !== null && saved !== undefined && saved.user === me?.name
  const ready = !saved || saved.state.state === 'ready'
  return (
    <Group gap={2} wrap="nowrap">
      <ActionButton
        compact
        label={t('use')}
        icon={IconPlus}
        reason={ready ? undefined : t('not_ready')}
        onClick={() => void navigate({ to: paths.newInstanceOf(image.reference) })}
      />
      {saved && own && (
        <>
          <ActionButton
            compact
            label={t('change', { name: saved.name })}
            icon={IconUsers}
            onClick={() => setAsked('share')}
          />
          <ActionButton
            compact
            danger
            label={t('delete', { name: saved.name })}
            icon={IconTrash}
            onClick={() => setAsked('delete')}
          />
          <Dialog opened={asked === 'share'} title={t('change', { name: saved.name })} onClose={close}>
            <ShareForm id={saved.id} name={saved.name} share={saved.share} onClose={close} />
          </Dialog>
          <DeleteDialog id={saved.id} name={saved.name} opened={asked === 'delete'} onClose={close} />
        </>
      )}
    </Group>
  )
}

interface OneProps {
  id: string
  name: string
  onClose: () => void
}

export function ShareSelect({ value, onChange }: { value: Share; onChange: (share: Share) => void }) {
  const { t } = useTranslation('images')
  return (
    <Select
      label={t('save.share')}
      description={t('share_help')}
      allowDeselect={false}
      data={SHARES.map((share) => ({ value: share, label: t(`share.${share}`) }))}
      value={value}
      onChange={(chosen) => {
        const share = SHARES.find((one) => one === chosen)
        if (share) onChange(share)
      }}
    />
  )
}

function ShareForm({ id, name, share, onClose }: OneProps & { share: Share }) {
  const { t } = useTranslation(['images', 'common'])
  const cache = useQueryClient()
  const [chosen, setChosen] = useState(share)
  const change = useMutation({
    mutationFn: () => changeImage(id, { share: chosen }),
    onSuccess: async () => {
      showDone(t('changed', { name }))
      onClose()
      await refetchImages(cache)
    },
  })
  return (
    <Stack>
      {change.error && <Trouble error={change.error} />}
      <ShareSelect value={chosen} onChange={setChosen} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {t('common:cancel')}
        </Button>
        <Button loading={change.isPending} onClick={() => change.mutate()}>
          {t('common:save')}
        </Button>
      </Group>
    </Stack>
  )
}

function DeleteDialog({ id, name, opened, onClose }: OneProps & { opened: boolean }) {
  const { t } = useTranslation('images')
  const cache = useQueryClient()
  const remove = useMutation({
    mutationFn: () => deleteImage(id),
    onSuccess: () => showDone(t('deleted', { name })),
    onError: showTrouble,
    onSettled: () => {
      onClose()
      return refetchImages(cache)
    },
  })
  return (
    <ConfirmDialog
      opened={opened}
      title={t('delete_title', { name })}
      confirm={t('delete_confirm')}
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <Text size="sm">{t('delete_text')}</Text>
    </ConfirmDialog>
  )
}
