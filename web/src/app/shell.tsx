import { AppShell, Burger, Group, NavLink, Text, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { useContext, useEffect } from 'react'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../api/session'
import { IconBox } from '../ui/icons'
import { paths } from '../util/path-builder'
import { AppearanceMenu } from './appearance-menu'
import { ConnectionBanner } from './connection-banner'
import { LanguageSwitch } from './language-switch'
import { LiveContext } from './live-context'
import { UserMenu } from './user-menu'

const MAIN_ID = 'main-content'

/** What stands around every page of somebody who is signed in. */
export function Shell() {
  const { t } = useTranslation(['common', 'instances'])
  const { data: me } = useSuspenseQuery(meQuery)
  const [opened, { toggle, close }] = useDisclosure()
  const { pathname } = useLocation()
  const live = useContext(LiveContext)
  // With a password that somebody else has seen nothing but changing it works.
  const ready = !me.must_change_password
  useEffect(() => (ready ? live?.start() : undefined), [live, ready])
  return (
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
          <UnstyledButton component={Link} to={paths.home()} mr="auto">
            <Group gap={8} wrap="nowrap">
              <img src="/favicon.svg" alt="" width={26} height={26} />
              <Text fw={700} size="lg">
                {t('product')}
              </Text>
            </Group>
          </UnstyledButton>
          <LanguageSwitch />
          <AppearanceMenu />
          <UserMenu me={me} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t('main_navigation')}>
        <NavLink
          component={Link}
          to={paths.instances()}
          label={t('instances:title')}
          leftSection={<IconBox size={20} stroke={1.75} />}
          active={pathname.startsWith(paths.instances())}
          aria-current={pathname.startsWith(paths.instances()) ? 'page' : undefined}
          onClick={close}
          style={{ borderRadius: 'var(--mantine-radius-md)' }}
        />
      </AppShell.Navbar>
      <AppShell.Main id={MAIN_ID} tabIndex={-1}>
        {ready && <ConnectionBanner />}
        {ready && <Outlet />}
      </AppShell.Main>
    </AppShell>
  )
}
