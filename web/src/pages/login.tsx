import { Center, Group, Paper, Stack } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { AppearanceMenu } from '../app/appearance-menu'
import { LanguageSwitch } from '../app/language-switch'
import { setSessionEnded } from '../app/session-ended'
import { SignInForm } from '../app/sign-in-form'
import { meQuery } from '../api/session'
import type { Me } from '../api/types'
import { PageTitle } from '../ui/page-title'
import { safeNext } from '../util/path-builder'

const route = getRouteApi('/login')

export interface LoginSearch {
  /** The path that was asked for before signing in was needed. */
  next?: string
}

export function LoginPage() {
  const { t } = useTranslation('session')
  const cache = useQueryClient()
  const navigate = route.useNavigate()
  const { next } = route.useSearch()
  const enter = async (me: Me) => {
    // Nothing of whoever was signed in before may remain.
    cache.clear()
    cache.setQueryData(meQuery.queryKey, me)
    setSessionEnded(false)
    await navigate({ href: safeNext(next) })
  }
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
            <SignInForm onSignedIn={enter} />
          </Stack>
        </Paper>
      </Center>
    </Stack>
  )
}
