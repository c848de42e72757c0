import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { ApiError } from '../api/client'
import { changePassword } from '../api/session'
import { Dialog } from '../ui/dialog'
import { SubmitButton } from '../ui/submit-button'
import { ignoreComposingEnter } from '../util/composing'
import { showDone, Trouble } from './trouble'

/** The gateway judges passwords; this only spares a round trip. */
const SHORTEST = 8

interface FirstProps {
  onDone: () => void
  onLeave: () => void
}

/** The first sign-in. Nothing else works before, so the only other way is out. */
export function FirstPasswordDialog({ onDone, onLeave }: FirstProps) {
  const { t } = useTranslation('session')
  return (
    <Dialog opened onClose={onLeave} stays title={t('change_password.first_title')}>
      <PasswordForm first onDone={onDone} onLeave={onLeave} />
    </Dialog>
  )
}

interface FormProps {
  first?: boolean
  onDone?: () => void
  onLeave?: () => void
}

export function PasswordForm({ first, onDone, onLeave }: FormProps) {
  const { t } = useTranslation('session')
  const cache = useQueryClient()
  const form = useForm({
    initialValues: { old: '', new: '', repeat: '' },
    validate: {
      old: (text) => (text === '' ? t('change_password.old_needed') : null),
      new: (text) => ([...text].length < SHORTEST ? t('change_password.too_short') : null),
      repeat: (text, values) => (text === values.new ? null : t('change_password.differs')),
    },
  })
  const change = useMutation({
    mutationFn: changePassword,
    onSuccess: async () => {
      showDone(t('change_password.done'))
      form.reset()
      await cache.invalidateQueries()
      onDone?.()
    },
    onError: (error) => {
      if (error instanceof ApiError && error.problem.code === 'bad_credentials') {
        form.setFieldError('old', t('change_password.old_wrong'))
      }
    },
  })
  const shown =
    change.error instanceof ApiError && change.error.problem.code === 'bad_credentials' ? null : change.error
  const toggle = { 'aria-label': t('sign_in.show_typed') }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => change.mutate({ old: values.old, new: values.new }))}
    >
      <Stack>
        {first && <Text size="sm">{t('change_password.first_text')}</Text>}
        {shown && <Trouble error={shown} />}
        <PasswordInput
          label={t('change_password.old')}
          description={t('change_password.old_help')}
          autoComplete="current-password"
          data-autofocus={first}
          visibilityToggleButtonProps={toggle}
          {...form.getInputProps('old')}
        />
        <PasswordInput
          label={t('change_password.new')}
          description={t('change_password.rule')}
          autoComplete="new-password"
          visibilityToggleButtonProps={toggle}
          {...form.getInputProps('new')}
        />
        <PasswordInput
          label={t('change_password.repeat')}
          description={t('change_password.repeat_help')}
          autoComplete="new-password"
          visibilityToggleButtonProps={toggle}
          {...form.getInputProps('repeat')}
        />
        <Group justify="flex-end">
          {onLeave && (
            <Button variant="default" onClick={onLeave}>
              {t('sign_out')}
            </Button>
          )}
          <SubmitButton label={t('change_password.submit')} busy={change.isPending} />
        </Group>
      </Stack>
    </form>
  )
}
