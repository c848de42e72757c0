import { Button, Center, Group, Paper, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type KeyboardEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { AppearanceMenu } from '../app/appearance-menu'
import { LanguageSwitch } from '../app/language-switch'
import { Trouble } from '../app/trouble'
import { meQuery, signIn } from '../api/session'
import { PageTitle } from '../ui/page-title'
import { ignoreComposingEnter } from '../util/composing'
import { safeNext } from '../util/path-builder'

const route = getRouteApi('/login')

export interface LoginSearch {
  /** The path that was asked for before signing in was needed. */
  next?: string
}

export function LoginPage() {
  const { t } = useTranslation('session')
  return (
    <Stack component="main" mih="100dvh" p="md" gap={0}>
      <Group justify="flex-end">
        <LanguageSwitch />
        <AppearanceMenu />
      </Group>
      <Center flex={1} pb={80}>
        <Paper withBorder shadow="sm" p="xl" w="100%" maw={400}>
          <Stack>
            <Group gap="sm" wrap="nowrap">
              <img src="/favicon.svg" alt="" width={36} height={36} />
              <PageTitle tab={t('sign_in.submit')}>{t('sign_in.title')}</PageTitle>
            </Group>
            <SignInForm />
          </Stack>
        </Paper>
      </Center>
    </Stack>
  )
}

function SignInForm() {
  const { t } = useTranslation('session')
  const cache = useQueryClient()
  const navigate = route.useNavigate()
  const { next } = route.useSearch()
  const [capsLock, setCapsLock] = useState(false)
  const form = useForm({
    initialValues: { user: '', password: '' },
    validate: {
      user: (text) => (text.trim() === '' ? t('sign_in.user_needed') : null),
      password: (text) => (text === '' ? t('sign_in.password_needed') : null),
    },
  })
  const enter = useMutation({
    mutationFn: ({ user, password }: { user: string; password: string }) => signIn(user.trim(), password),
    onSuccess: async (me) => {
      // Nothing of whoever was signed in before may remain.
      cache.clear()
      cache.setQueryData(meQuery.queryKey, me)
      await navigate({ href: safeNext(next) })
    },
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
          autoFocus
          {...form.getInputProps('user')}
        />
        <PasswordInput
          label={t('sign_in.password')}
          autoComplete="current-password"
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
