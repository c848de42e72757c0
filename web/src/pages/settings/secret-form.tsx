import {
  Button,
  Group,
  PasswordInput,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { showDone, Trouble } from '../../app/trouble'
import { type Keeper, secretsQuery, setSecret } from '../../api/secrets'
import type { Secret } from '../../api/types'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, secretCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'

const NAME = /^[A-Za-z_][A-Za-z0-9._-]{0,63}$/

type Kind = 'value' | 'registry'

interface SecretValues {
  kind: Kind
  name: string
  value: string
  host: string
  user: string
}

interface SecretFormProps {
  keeper: Keeper
  /** The one that gets another value. */
  old?: Secret
  onClose: () => void
}

/** Sets a secret, new or not. What it was is not known here. */
export function SecretForm({ keeper, old, onClose }: SecretFormProps) {
  const { t } = useTranslation(['settings', 'common'])
  const cache = useQueryClient()
  const isLogin = old ? old.registry !== undefined : keeper === 'site'
  const needed = (text: string) => (text.trim() === '' ? t('secrets.needed') : null)
  const form = useForm<SecretValues>({
    initialValues: {
      kind: isLogin ? 'registry' : 'value',
      name: old?.name ?? '',
      value: '',
      host: old?.registry?.host ?? '',
      user: old?.registry?.user ?? '',
    },
    validate: {
      name: (text) => (NAME.test(text.trim()) ? null : t('secrets.name_wrong')),
      value: (text) => (text === '' ? t('secrets.needed') : null),
      host: (text, { kind }) => (kind === 'registry' ? needed(text) : null),
      user: (text, { kind }) => (kind === 'registry' ? needed(text) : null),
    },
  })
  const set = useMutation({
    mutationFn: ({ kind, name, value, host, user }: SecretValues) =>
      setSecret(keeper, name.trim(), kind === 'value' ? { value } : { value, registry: { host, user } }),
    onSuccess: async (secret) => {
      await cache.invalidateQueries({ queryKey: secretsQuery(keeper).queryKey })
      showDone(t('secrets.set_done', { name: secret.name }))
      onClose()
    },
  })
  const kind = form.values.kind
  return (
    <form
      noValidate
      autoComplete="off"
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => set.mutate(values))}
    >
      <Stack>
        {set.error && <Trouble error={set.error} />}
        {!old && keeper === 'me' && (
          <SegmentedControl<Kind>
            aria-label={t('secrets.kind')}
            data={[
              { value: 'value', label: t('secrets.kind_value') },
              { value: 'registry', label: t('secrets.kind_registry') },
            ]}
            {...form.getInputProps('kind')}
          />
        )}
        <Text size="sm" c="dimmed">
          {t(kind === 'value' ? 'secrets.value_text' : 'secrets.registry_text')}
        </Text>
        <TextInput
          label={t('secrets.name')}
          description={t('secrets.name_help')}
          disabled={old !== undefined}
          data-autofocus={old ? undefined : true}
          {...form.getInputProps('name')}
        />
        {kind === 'value' ? (
          <Textarea
            label={t('secrets.value')}
            description={t('secrets.value_help')}
            autosize
            minRows={2}
            maxRows={8}
            spellCheck={false}
            data-autofocus={old ? true : undefined}
            {...form.getInputProps('value')}
          />
        ) : (
          <>
            <TextInput
              label={t('secrets.host')}
              description={t('secrets.host_help')}
              placeholder={t('secrets.host_example')}
              {...form.getInputProps('host')}
            />
            <TextInput
              label={t('secrets.user')}
              description={t('secrets.user_help')}
              {...form.getInputProps('user')}
            />
            <PasswordInput
              label={t('secrets.password')}
              description={t('secrets.password_help')}
              autoComplete="new-password"
              data-autofocus={old ? true : undefined}
              {...form.getInputProps('value')}
            />
          </>
        )}
        <AsCommand keeper={keeper} values={form.values} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t(old ? 'secrets.replace_submit' : 'secrets.submit')} busy={set.isPending} />
        </Group>
      </Stack>
    </form>
  )
}

/** Without the value: what is copied from here goes into files and histories. */
function AsCommand({ keeper, values }: { keeper: Keeper; values: SecretValues }) {
  const { kind, name, host, user } = values
  const registry = kind === 'registry' ? { host, user } : null
  return (
    <ShowAs
      command={secretCommand(name.trim(), registry, keeper === 'site')}
      request={apiRequest('PUT', `/${keeper}/secrets/${name.trim() || 'NAME'}`, {
        value: '…',
        ...(registry && { registry }),
      })}
    />
  )
}
