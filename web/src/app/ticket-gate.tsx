// A link that signs in: `…#ticket=…`, as `berth open` makes it. The ticket is behind the `#`, so no server log has it,
// works once and soon, and is out of the address before anything else is done.

import { Button, Center, Group, Paper, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { meQuery, signInByTicket, whoAmI } from '../api/session'
import type { Me } from '../api/types'
import { PageTitle } from '../ui/page-title'
import { Trouble } from './trouble'

export interface Ticket {
  ticket: string
  /** Whom it signs in, as it says itself. */
  user: string | null
}

/** The ticket in the page's address, which loses it. */
export function takeTicket(): Ticket | null {
  const fragment = new URLSearchParams(window.location.hash.slice(1))
  const ticket = fragment.get('ticket')
  if (ticket === null) return null
  const { pathname, search } = window.location
  window.history.replaceState(window.history.state, '', `${pathname}${search}`)
  return { ticket, user: subject(ticket) }
}

/** The name in a ticket, unproven: the gateway checks tickets. */
function subject(ticket: string): string | null {
  try {
    const [, claims = ''] = ticket.split('.')
    const read: unknown = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')))
    const named = typeof read === 'object' && read !== null && 'sub' in read ? read.sub : null
    return typeof named === 'string' ? named : null
  } catch {
    return null
  }
}

type Standing =
  { at: 'checking' } | { at: 'asking'; me: Me } | { at: 'failed'; error: unknown } | { at: 'done' }

/** Shows the console once it is clear who is signed in. */
export function TicketGate({ ticket, children }: { ticket: Ticket | null; children: ReactNode }) {
  const cache = useQueryClient()
  const [standing, setStanding] = useState<Standing>({ at: ticket === null ? 'done' : 'checking' })
  const begun = useRef(false)

  const use = useCallback(async () => {
    if (ticket === null) return
    try {
      const me = await signInByTicket(ticket.ticket)
      // Nothing of whoever was signed in before may remain.
      cache.clear()
      cache.setQueryData(meQuery.queryKey, me)
      setStanding({ at: 'done' })
    } catch (error) {
      setStanding({ at: 'failed', error })
    }
  }, [cache, ticket])

  useEffect(() => {
    if (ticket === null || begun.current) return
    begun.current = true
    // Whoever is signed in is asked first: the link may come from somebody who wants them in another account. A link
    // that names them changes nothing, so a link that lies about it changes nothing either.
    const ask = (me: Me) => setStanding(me.name === ticket.user ? { at: 'done' } : { at: 'asking', me })
    // Not by the cache: there, nobody being signed in leads to the sign-in page.
    whoAmI().then(ask, use)
  }, [ticket, use])

  if (standing.at === 'done') return children
  return (
    <Center component="main" mih="100dvh" p="md">
      {standing.at === 'asking' && (
        <Question me={standing.me} onStay={() => setStanding({ at: 'done' })} onUse={() => void use()} />
      )}
      {standing.at === 'failed' && (
        <Failed error={standing.error} onGoOn={() => setStanding({ at: 'done' })} />
      )}
    </Center>
  )
}

function Question({ me, onStay, onUse }: { me: Me; onStay: () => void; onUse: () => void }) {
  const { t } = useTranslation('session')
  return (
    <Paper withBorder shadow="sm" p="xl" maw={480}>
      <Stack>
        <PageTitle>{t('ticket.title')}</PageTitle>
        <Text>{t('ticket.text', { name: me.name })}</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onUse}>
            {t('ticket.use')}
          </Button>
          <Button onClick={onStay} data-autofocus>
            {t('ticket.stay', { name: me.name })}
          </Button>
        </Group>
      </Stack>
    </Paper>
  )
}

function Failed({ error, onGoOn }: { error: unknown; onGoOn: () => void }) {
  const { t } = useTranslation('session')
  return (
    <Stack maw={480}>
      <PageTitle>{t('ticket.failed')}</PageTitle>
      <Trouble error={error} />
      <Group>
        <Button onClick={onGoOn}>{t('ticket.go_on')}</Button>
      </Group>
    </Stack>
  )
}
