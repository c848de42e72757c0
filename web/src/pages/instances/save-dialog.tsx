import { Alert, Button, Code, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { showDone, Trouble } from '../../app/trouble'
import { changesQuery, refetchImages, saveInstance } from '../../api/images'
import type { Changes, Instance, SaveInstance, Share } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { IconAlert } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { ShowAsCommand } from '../../ui/show-as-command'
import { saveCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { formatBytes } from '../../util/format'
import { paths } from '../../util/path-builder'
import { ShareSelect } from '../images/actions'

interface Props {
  instance: Instance
  opened: boolean
  onClose: () => void
}

export function SaveDialog({ instance, opened, onClose }: Props) {
  const { t } = useTranslation('images')
  return (
    <Dialog opened={opened} onClose={onClose} title={t('save.title', { name: instance.name })}>
      <SaveForm instance={instance} onClose={onClose} />
    </Dialog>
  )
}

interface Values {
  name: string
  tag: string
  message: string
  share: Share
  stop: boolean
}

function requestFrom({ name, tag, message, share, stop }: Values): SaveInstance {
  return {
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(tag.trim() !== '' && { tag: tag.trim() }),
    ...(message.trim() !== '' && { message: message.trim() }),
    share,
    stop,
  }
}

function SaveForm({ instance, onClose }: Omit<Props, 'opened'>) {
  const { t } = useTranslation(['images', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const form = useForm<Values>({
    initialValues: { name: '', tag: '', message: '', share: 'me', stop: false },
  })
  const save = useMutation({
    mutationFn: (values: Values) => saveInstance(instance.id, requestFrom(values)),
    onSuccess: async (image) => {
      showDone(t('save.begun', { name: image.saved?.name ?? image.reference }))
      onClose()
      await refetchImages(cache)
      await navigate({ to: paths.images() })
    },
  })
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => save.mutate(values))}
    >
      <Stack>
        <Text size="sm">{t('save.text')}</Text>
        {save.error && <Trouble error={save.error} />}
        <Group grow align="flex-end">
          <TextInput
            label={t('save.name')}
            description={t('save.name_help')}
            autoCapitalize="none"
            spellCheck={false}
            data-autofocus
            {...form.getInputProps('name')}
          />
          <TextInput
            label={t('save.tag')}
            description={t('save.tag_help')}
            autoCapitalize="none"
            spellCheck={false}
            {...form.getInputProps('tag')}
          />
        </Group>
        <Textarea label={t('save.message')} autosize minRows={2} {...form.getInputProps('message')} />
        <ShareSelect value={form.values.share} onChange={(share) => form.setFieldValue('share', share)} />
        <Switch label={t('save.stop')} {...form.getInputProps('stop', { type: 'checkbox' })} />
        <WhatIsIn instance={instance} />
        <ShowAsCommand command={saveCommand(instance.name, requestFrom(form.values))} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <Button type="submit" loading={save.isPending}>
            {t('save.submit')}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function WhatIsIn({ instance }: { instance: Instance }) {
  const { t } = useTranslation('images')
  const { data, error, isPending } = useQuery(changesQuery(instance.id))
  return (
    <Stack gap="xs" component="section" aria-label={t('save.changes')}>
      <Text fw={600} size="sm">
        {t('save.changes')}
      </Text>
      {error && <Trouble error={error} />}
      {isPending && <LoadingRows rows={1} height={48} />}
      {data && <ChangesView changes={data} />}
    </Stack>
  )
}

/** As many as fit without scrolling far. */
const SHOWN = 5

function ChangesView({ changes }: { changes: Changes }) {
  const { t, i18n } = useTranslation('images')
  const list = new Intl.ListFormat(i18n.language, { type: 'conjunction' })
  return (
    <>
      <Text size="sm">{t('save.sum', { files: changes.files, bytes: formatBytes(changes.bytes) })}</Text>
      {changes.secrets.length > 0 && (
        <Alert color="yellow" icon={<IconAlert />} title={t('save.secrets')}>
          <Stack gap={2} align="flex-start">
            {changes.secrets.slice(0, SHOWN).map((path) => (
              <Code key={path} className="breakable">
                {path}
              </Code>
            ))}
          </Stack>
        </Alert>
      )}
      {changes.largest.length > 0 && (
        <Stack gap={2}>
          <Text size="sm" c="dimmed">
            {t('save.largest')}
          </Text>
          {changes.largest.slice(0, SHOWN).map(({ path, bytes }) => (
            <Group key={path} justify="space-between" wrap="nowrap" gap="xs">
              <Code className="breakable">{path}</Code>
              <Text size="xs" className="numbers" style={{ whiteSpace: 'nowrap' }}>
                {formatBytes(bytes)}
              </Text>
            </Group>
          ))}
        </Stack>
      )}
      {changes.mounts.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          {t('save.not_in', { paths: list.format(changes.mounts) })}
        </Text>
      )}
      {changes.excluded.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          {t('save.excluded', { paths: list.format(changes.excluded.map(({ path }) => path)) })}
        </Text>
      )}
    </>
  )
}
