import { AppShell, Burger, Group, Loader, NavLink, Text, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Suspense, useContext, useEffect } from 'react'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../api/session'
import { siteQuery } from '../api/site'
import { OfflineContext } from '../ui/offline'
import { firstPart } from '../util/later'
import { paths } from '../util/path-builder'
import { Announcements } from './announcements'
import { AppearanceMenu } from './appearance-menu'
import { ConnectionBanner } from './connection-banner'
import { LanguageSwitch } from './language-switch'
import { LiveContext, useUnreachable } from './live-context'
import { isAt, placesOf } from './navigation'
import { PaletteButton } from './palette-button'
import { useSessionEnded } from './session-ended'
import { TasksTray } from './tasks-tray'
import { UserMenu } from './user-menu'

const SessionEndedDialog = firstPart(async () => ({
  default: (await import('./session-ended-dialog')).SessionEndedDialog,
}))

const MAIN_ID = 'main-content'

/** What stands around every page of somebody who is signed in. */
export function Shell() {
  const { t } = useTranslation()
  const { data: me } = useSuspenseQuery(meQuery)
  const [opened, { toggle, close }] = useDisclosure()
  const { data: site } = useQuery({ ...siteQuery, enabled: !me.must_change_password })
  const ended = useSessionEnded()
  const live = useContext(LiveContext)
  // With a password that somebody else has seen nothing but changing it works.
  const ready = !me.must_change_password
  const offline = useUnreachable() ? t('connection.needed') : undefined
  useEffect(() => (ready ? live?.start() : undefined), [live, ready])
  return (
    <OfflineContext value={offline}>
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !opened } }}
        padding={{ base: 'md', md: 'lg' }}
      >
        <AppShell.Header px="md">
          <a className="skip-link" href={`#${MAIN_ID}`}>
            {t('skip_to_content')}
          </a>
          <Group h="100%" gap="xs" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t(opened ? 'close_navigation' : 'open_navigation')}
            />
            <UnstyledButton component={Link} to={paths.home()} mr="auto" aria-label={t('to_home')}>
              <Group gap={8} wrap="nowrap">
                <img src="/favicon.svg" alt="" width={26} height={26} />
                <Text fw={700} size="lg" visibleFrom="xs" lineClamp={1}>
                  {site?.name || t('product')}
                </Text>
              </Group>
            </UnstyledButton>
            {ready && <PaletteButton me={me} />}
            {ready && <TasksTray me={me} />}
            <LanguageSwitch />
            <AppearanceMenu />
            <UserMenu me={me} />
          </Group>
        </AppShell.Header>
        <Suspense>{ended && <SessionEndedDialog me={me} />}</Suspense>
        <AppShell.Navbar p="xs" aria-label={t('main_navigation')}>
          <Places me={me} onChoose={close} />
        </AppShell.Navbar>
        <AppShell.Main id={MAIN_ID} tabIndex={-1}>
          {ready && <ConnectionBanner />}
          {ready && <Announcements />}
          {ready && (
            <Suspense fallback={<Loader className="after-a-moment" type="dots" aria-label={t('loading')} />}>
              <Outlet />
            </Suspense>
          )}
        </AppShell.Main>
      </AppShell>
    </OfflineContext>
  )
}

function Places({ me, onChoose }: { me: Parameters<typeof placesOf>[0]; onChoose: () => void }) {
  const { t } = useTranslation()
  const { pathname } = useLocation()
  return placesOf(me).map((place) => {
    const here = isAt(place, pathname)
    return (
      <NavLink
        key={place.key}
        component={Link}
        to={place.path}
        label={t(`place.${place.key}`)}
        leftSection={<place.icon size={20} stroke={1.75} />}
        active={here}
        aria-current={here ? 'page' : undefined}
        onClick={onChoose}
        style={{ borderRadius: 'var(--mantine-radius-md)' }}
      />
    )
  })
}
