import { Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useContext } from 'react'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../api/session'
import type { Me } from '../api/types'
import { Dialog } from '../ui/dialog'
import { paths } from '../util/path-builder'
import { LiveContext } from './live-context'
import { setSessionEnded } from './session-ended'
import { SignInForm } from './sign-in-form'

/** Asks for the password again without taking the page away. */
export function SessionEndedDialog({ me }: { me: Me }) {
  const { t } = useTranslation('session')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const live = useContext(LiveContext)
  const goOn = async (now: Me) => {
    const same = now.name === me.name
    // Nothing of whoever was signed in before may remain for somebody else.
    if (!same) {
      cache.clear()
      await navigate({ to: paths.home() })
    }
    cache.setQueryData(meQuery.queryKey, now)
    setSessionEnded(false)
    live?.reconnect()
    if (same) await cache.invalidateQueries()
  }
  return (
    <Dialog opened stays title={t('ended.title')} onClose={() => undefined}>
      <Stack>
        <Text size="sm">{t('ended.text')}</Text>
        <SignInForm user={me.name} onSignedIn={goOn} />
      </Stack>
    </Dialog>
  )
}
