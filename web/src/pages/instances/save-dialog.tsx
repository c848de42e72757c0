import { Button, Group, SegmentedControl, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useForm, type UseFormReturnType } from '@mantine/form'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { showDone, Trouble } from '../../app/trouble'
import { refetchImages, saveInstance } from '../../api/images'
import type { Instance, SaveInstance, Share } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, saveCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { paths } from '../../util/path-builder'
import { MessageInput, ShareSelect } from '../images/actions'
import { WhatIsIn } from './save-changes'

/** Files are walked for each answer: not for each letter. */
const PAUSE_MS = 800

interface Props {
  instance: Instance
  opened: boolean
  /** Somebody was about to stop it. */
  thenStop?: boolean
  onClose: () => void
}

export function SaveDialog({ instance, opened, thenStop, onClose }: Props) {
  const { t } = useTranslation('images')
  return (
    <Dialog typed opened={opened} onClose={onClose} title={t('save.title', { name: instance.name })}>
      <SaveForm instance={instance} thenStop={thenStop} onClose={onClose} />
    </Dialog>
  )
}

interface Values {
  name: string
  tag: string
  message: string
  share: Share
  stop: boolean
  leave: Leave
  /** One path in each line, where they are one's own. */
  paths: string
}

const LEAVE = ['usual', 'own', 'nothing'] as const
/** What is left out of the image. */
type Leave = (typeof LEAVE)[number]

/** The paths that are left out; undefined for those that the site leaves out of itself. */
function excludeOf({ leave, paths: typed }: Pick<Values, 'leave' | 'paths'>): string[] | undefined {
  if (leave === 'usual') return undefined
  if (leave === 'nothing') return []
  return typed
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

export function requestFrom(values: Values): SaveInstance {
  const { name, tag, message, share, stop } = values
  const exclude = excludeOf(values)
  return {
    ...(exclude && { exclude }),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(tag.trim() !== '' && { tag: tag.trim() }),
    ...(message.trim() !== '' && { message: message.trim() }),
    share,
    stop,
  }
}

function SaveForm({ instance, thenStop = false, onClose }: Omit<Props, 'opened'>) {
  const { t } = useTranslation(['images', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const form = useForm<Values>({
    initialValues: { name: '', tag: '', message: '', share: 'me', stop: thenStop, leave: 'usual', paths: '' },
  })
  const [settled] = useDebouncedValue(excludeOf(form.values), PAUSE_MS)
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
        <MessageInput {...form.getInputProps('message')} />
        <ShareSelect value={form.values.share} onChange={(share) => form.setFieldValue('share', share)} />
        <Switch
          label={t('save.stop')}
          description={t('save.stop_help')}
          {...form.getInputProps('stop', { type: 'checkbox' })}
        />
        <LeaveOut form={form} />
        <WhatIsIn instance={instance} exclude={settled} />
        <ShowAs
          command={saveCommand(instance.name, requestFrom(form.values))}
          request={apiRequest('POST', `/instances/${instance.slug}/save`, requestFrom(form.values))}
        />
        <Group justify="flex-end" className="dialog-buttons">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('save.submit')} busy={save.isPending} />
        </Group>
      </Stack>
    </form>
  )
}

function LeaveOut({ form }: { form: UseFormReturnType<Values> }) {
  const { t } = useTranslation('images')
  return (
    <Stack gap={4}>
      <Text size="sm" fw={500}>
        {t('save.leave')}
      </Text>
      <Text size="xs" c="dimmed">
        {t(`save.leave_${form.values.leave}_help`)}
      </Text>
      <SegmentedControl<Leave>
        aria-label={t('save.leave')}
        data={LEAVE.map((value) => ({ value, label: t(`save.leave_${value}`) }))}
        {...form.getInputProps('leave')}
      />
      {form.values.leave === 'own' && (
        <Textarea
          aria-label={t('save.leave_paths')}
          description={t('save.leave_help')}
          placeholder={'/root/.cache\n/opt/*/pkgs'}
          autosize
          minRows={2}
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
          {...form.getInputProps('paths')}
        />
      )}
    </Stack>
  )
}
