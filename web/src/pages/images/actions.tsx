import {
  Button,
  Group,
  Select,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
  type TextareaProps,
} from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { changeImage, dockerfileQuery, refetchImages, retryImage } from '../../api/images'
import { meQuery } from '../../api/session'
import type { ChangeImage, Image, SavedImage, Share } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { CopyField } from '../../ui/copy'
import { Dialog } from '../../ui/dialog'
import { IconBox, IconJobs, IconRestart, IconRules, IconUsers } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, changeImageCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { paths } from '../../util/path-builder'
import { RemoveImage } from './removal'

const SHARES: readonly Share[] = ['me', 'group', 'everyone']

/** What can be done with an image: start from it, and whatever its user or an admin may change. */
export function ImageActions({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  const navigate = useNavigate()
  const { saved } = image
  const reason = !saved || saved.state.state === 'ready' ? undefined : t('not_ready')
  return (
    <Group gap={2} wrap="nowrap">
      <ActionButton
        compact
        label={t('use')}
        icon={IconBox}
        reason={reason}
        onClick={() => void navigate({ to: paths.newInstanceOf(image.reference) })}
      />
      <ActionButton
        compact
        label={t('use_in_job')}
        icon={IconJobs}
        reason={reason}
        onClick={() => void navigate({ to: paths.newJobOf(image.reference) })}
      />
      {saved?.instance && saved.state.state === 'ready' && <DockerfileButton saved={saved} />}
      {saved && <SavedActions saved={saved} />}
    </Group>
  )
}

/** What would make the like of it, for whoever may use it. */
function DockerfileButton({ saved }: { saved: SavedImage }) {
  const { t } = useTranslation('images')
  const [opened, setOpened] = useState(false)
  const title = t('dockerfile', { name: saved.name })
  return (
    <>
      <ActionButton compact label={title} icon={IconRules} onClick={() => setOpened(true)} />
      <Dialog opened={opened} title={title} onClose={() => setOpened(false)}>
        <Dockerfile id={saved.id} />
      </Dialog>
    </>
  )
}

function Dockerfile({ id }: { id: string }) {
  const { t } = useTranslation('images')
  const { data, error, isPending } = useQuery(dockerfileQuery(id))
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {t('dockerfile_text')}
      </Text>
      {error && <Trouble error={error} />}
      {isPending && <LoadingRows rows={3} />}
      {data && <CopyField block text={data.dockerfile} label={t('dockerfile_copy')} />}
    </Stack>
  )
}

function SavedActions({ saved }: { saved: SavedImage }) {
  const { t } = useTranslation('images')
  const cache = useQueryClient()
  const retry = useMutation({
    mutationFn: () => retryImage(saved.id),
    onSuccess: async () => {
      showDone(t('retried', { name: saved.name }))
      await refetchImages(cache)
    },
    onError: showTrouble,
  })
  const { data: me } = useQuery(meQuery)
  const [changing, setChanging] = useState(false)
  const close = () => setChanging(false)
  const own = saved.user === me?.name
  const admin = me?.role === 'admin'
  const promotes = admin && isOffered(saved, me.name)
  if (!own && !admin) return null
  return (
    <>
      {own && saved.state.state === 'failed' && (
        <ActionButton
          compact
          label={t('retry', { name: saved.name })}
          icon={IconRestart}
          onClick={() => retry.mutate()}
        />
      )}
      {(own || promotes) && (
        <ActionButton
          compact
          label={t('change', { name: saved.name })}
          icon={IconUsers}
          onClick={() => setChanging(true)}
        />
      )}
      <RemoveImage saved={saved} compact />
      <Dialog typed opened={changing} title={t('change', { name: saved.name })} onClose={close}>
        <ChangeForm saved={saved} own={own} promotes={promotes} onClose={close} />
      </Dialog>
    </>
  )
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

/** What an image is for; the rest is what a form keeps of a field. */
export function MessageInput(field: Omit<TextareaProps, 'label' | 'description'>) {
  const { t } = useTranslation('images')
  return (
    <Textarea
      label={t('save.message')}
      description={t('save.message_help')}
      autosize
      minRows={2}
      {...field}
    />
  )
}

/** Whether the platform's list takes an image: who runs the site gives everybody only what its user gives, or their own. */
export function isOffered({ user, platform, proposed, share }: SavedImage, me: string): boolean {
  return platform || proposed || share === 'everyone' || user === me
}

interface ChangeProps {
  saved: SavedImage
  own: boolean
  promotes: boolean
  onClose: () => void
}

type Changeable = Required<Pick<SavedImage, 'name' | 'tag' | 'share' | 'message' | 'proposed' | 'platform'>>

function changesOf(before: Changeable, after: Changeable): ChangeImage {
  return {
    ...(after.name !== before.name && { name: after.name }),
    ...(after.tag !== before.tag && { tag: after.tag }),
    ...(after.share !== before.share && { share: after.share }),
    ...(after.message !== before.message && { message: after.message }),
    ...(after.proposed !== before.proposed && { proposed: after.proposed }),
    ...(after.platform !== before.platform && { platform: after.platform }),
  }
}

/** Its user says who may use it, an admin what is on the platform's list. */
function ChangeForm({ saved, own, promotes, onClose }: ChangeProps) {
  const { t } = useTranslation(['images', 'common'])
  const cache = useQueryClient()
  const { name, tag, share, message, proposed, platform } = saved
  const whole = saved.state.state === 'ready'
  const form = useForm({ initialValues: { name, tag, share, message, proposed, platform } })
  const wanted = changesOf({ name, tag, share, message, proposed, platform }, form.values)
  const change = useMutation({
    mutationFn: () => changeImage(saved.id, wanted),
    onSuccess: async () => {
      showDone(t('changed', { name: saved.name }))
      onClose()
      await refetchImages(cache)
    },
  })
  return (
    <form noValidate onKeyDownCapture={ignoreComposingEnter} onSubmit={form.onSubmit(() => change.mutate())}>
      <Stack>
        {change.error && <Trouble error={change.error} />}
        {own && (
          <>
            {whole && (
              <>
                <TextInput label={t('name')} description={t('rename_help')} {...form.getInputProps('name')} />
                <TextInput label={t('tag')} description={t('save.tag_help')} {...form.getInputProps('tag')} />
              </>
            )}
            <ShareSelect
              value={form.values.share}
              onChange={(chosen) => form.setFieldValue('share', chosen)}
            />
            <MessageInput {...form.getInputProps('message')} />
            <Switch
              label={t('propose')}
              description={t('propose_help')}
              {...form.getInputProps('proposed', { type: 'checkbox' })}
            />
          </>
        )}
        {promotes && (
          <Switch
            label={t('promote')}
            description={t('promote_help')}
            {...form.getInputProps('platform', { type: 'checkbox' })}
          />
        )}
        {form.isDirty() && (
          <ShowAs
            command={changeImageCommand(own ? `${name}:${tag}` : `${saved.user}/${name}:${tag}`, wanted)}
            request={apiRequest('PATCH', `/images/${saved.id}`, wanted)}
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton
            label={t('common:save')}
            busy={change.isPending}
            reason={form.isDirty() ? undefined : t('common:unchanged')}
          />
        </Group>
      </Stack>
    </form>
  )
}
