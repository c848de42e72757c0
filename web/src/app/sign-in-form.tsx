import { Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation } from '@tanstack/react-query'
import { type KeyboardEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { signIn } from '../api/session'
import type { Me } from '../api/types'
import { ignoreComposingEnter } from '../util/composing'
import { Trouble } from './trouble'

interface Props {
  /** Who signs in again. */
  user?: string
  onSignedIn: (me: Me) => Promise<void>
}

export function SignInForm({ user = '', onSignedIn }: Props) {
  const { t } = useTranslation('session')
  const [capsLock, setCapsLock] = useState(false)
  const form = useForm({
    initialValues: { user, password: '' },
    validate: {
      user: (text) => (text.trim() === '' ? t('sign_in.user_needed') : null),
      password: (text) => (text === '' ? t('sign_in.password_needed') : null),
    },
  })
  const enter = useMutation({
    mutationFn: (values: { user: string; password: string }) => signIn(values.user.trim(), values.password),
    onSuccess: onSignedIn,
  })
  const watchCapsLock = (event: KeyboardEvent) => setCapsLock(event.getModifierState('CapsLock'))
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => enter.mutate(values))}
    >
      <Stack>
        {enter.error && <Trouble error={enter.error} />}
        <TextInput
          label={t('sign_in.user')}
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          // The one thing to do on this page.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus={user === ''}
          {...form.getInputProps('user')}
        />
        <PasswordInput
          label={t('sign_in.password')}
          autoComplete="current-password"
          data-autofocus={user !== '' || undefined}
          visibilityToggleButtonProps={{ 'aria-label': t('sign_in.show_typed') }}
          onKeyUp={watchCapsLock}
          {...form.getInputProps('password')}
        />
        {capsLock && (
          <Text size="sm" role="status">
            {t('sign_in.caps_lock')}
          </Text>
        )}
        <Button type="submit" loading={enter.isPending} fullWidth>
          {t('sign_in.submit')}
        </Button>
      </Stack>
    </form>
  )
}
