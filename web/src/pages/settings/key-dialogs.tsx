import { Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { TextFileButton } from '../../app/text-file-button'
import { showDone, Trouble } from '../../app/trouble'
import { addSshKey, makeSshPair, sshKeysQuery } from '../../api/ssh'
import type { AddSshKey } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { SecretOnce } from '../../ui/secret-once'
import { CopyField } from '../../ui/copy'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { addKeyCommand, apiRequest, newKeyCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { pairFile, placePairCommand } from '../../util/ssh-lines'

interface Props {
  opened: boolean
  onClose: () => void
}

export function AddKeyDialog({ opened, onClose }: Props) {
  const { t } = useTranslation('settings')
  return (
    <Dialog typed opened={opened} onClose={onClose} title={t('ssh_keys.add')}>
      <AddKeyForm onClose={onClose} />
    </Dialog>
  )
}

interface KeyValues {
  key: string
  name: string
}

function keyFrom({ key, name }: KeyValues): AddSshKey {
  return { key: key.trim(), ...(name.trim() !== '' && { name: name.trim() }) }
}

function AddKeyForm({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(['settings', 'common'])
  const cache = useQueryClient()
  const form = useForm({
    initialValues: { key: '', name: '' },
    validate: {
      key: (text) => {
        if (text.trim() === '') return t('ssh_keys.key_needed')
        // Said here and not only by the gateway: a private key must not even be sent.
        return text.includes('PRIVATE KEY') ? t('ssh_keys.key_is_private') : null
      },
    },
  })
  const add = useMutation({
    mutationFn: (values: KeyValues) => addSshKey(keyFrom(values)),
    onSuccess: async (key) => {
      showDone(t('ssh_keys.added_done', { name: key.name }))
      onClose()
      await cache.invalidateQueries({ queryKey: sshKeysQuery.queryKey })
    },
  })
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => add.mutate(values))}
    >
      <Stack>
        {add.error && <Trouble error={add.error} />}
        <Textarea
          label={t('ssh_keys.key')}
          description={t('ssh_keys.key_help')}
          autosize
          minRows={3}
          maxRows={8}
          spellCheck={false}
          data-autofocus
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
          {...form.getInputProps('key')}
        />
        <TextFileButton
          small
          label={t('ssh_keys.from_file')}
          onText={(text) => form.setFieldValue('key', text)}
        />
        <TextInput
          label={t('ssh_keys.name')}
          description={t('ssh_keys.name_help')}
          {...form.getInputProps('name')}
        />
        <ShowAs
          command={addKeyCommand(form.values.name.trim())}
          request={apiRequest('POST', '/me/ssh-keys', keyFrom(form.values))}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('ssh_keys.add_submit')} busy={add.isPending} />
        </Group>
      </Stack>
    </form>
  )
}

export function MakePairDialog({ opened, onClose }: Props) {
  const { t } = useTranslation('settings')
  // What is shown in it cannot be shown again: it closes by its own button alone.
  return (
    <Dialog opened={opened} onClose={onClose} stays title={t('ssh_keys.make')}>
      <MakePairForm onClose={onClose} />
    </Dialog>
  )
}

function MakePairForm({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(['settings', 'common'])
  const cache = useQueryClient()
  const form = useForm({
    initialValues: { name: 'berth' },
    validate: { name: (text) => (text.trim() === '' ? t('ssh_keys.name_needed') : null) },
  })
  const make = useMutation({
    mutationFn: ({ name }: { name: string }) => makeSshPair(name.trim()),
  })
  // Only now: what shows this dialog may be gone once there is a key, and with it the private half.
  const finish = () => {
    onClose()
    void cache.invalidateQueries({ queryKey: sshKeysQuery.queryKey })
  }
  if (make.data) {
    const file = pairFile(make.data.key.name)
    return (
      <Stack>
        <SecretOnce
          title={t('ssh_keys.private_once')}
          secret={make.data.private_key}
          label={t('ssh_keys.copy_private')}
          file={file}
        />
        <Text size="sm">{t('ssh_keys.put_it')}</Text>
        <CopyField block text={placePairCommand(file)} />
        <Group justify="flex-end">
          <Button onClick={finish}>{t('ssh_keys.saved_it')}</Button>
        </Group>
      </Stack>
    )
  }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => make.mutate(values))}
    >
      <Stack>
        <Text size="sm">{t('ssh_keys.make_text')}</Text>
        {make.error && <Trouble error={make.error} />}
        <TextInput
          label={t('ssh_keys.name')}
          description={t('ssh_keys.name_help')}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <ShowAs
          command={newKeyCommand(form.values.name.trim())}
          request={apiRequest('POST', '/me/ssh-keys/pair', { name: form.values.name.trim() })}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('ssh_keys.make_submit')} busy={make.isPending} />
        </Group>
      </Stack>
    </form>
  )
}
