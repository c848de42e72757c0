import { ActionIcon, Menu } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Suspense } from 'react'
import { useTranslation } from 'react-i18next'

import { siteQuery } from '../api/site'
import type { Me } from '../api/types'
import { IconHelp, IconLogout, IconSettings, IconUser } from '../ui/icons'
import { paths } from '../util/path-builder'
import { firstPart } from '../util/later'
import { RulesGate } from './rules-gate'
import { useSignOut } from './use-sign-out'

// Once in an account's life.
const FirstPasswordDialog = firstPart(async () => ({
  default: (await import('./password-dialog')).FirstPasswordDialog,
}))

export function UserMenu({ me }: { me: Me }) {
  const { t } = useTranslation(['session', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const leave = useSignOut()
  // Whoever has just set the site up is led through the rest of it.
  const begin = async () => {
    if (me.role !== 'admin') return
    const site = await cache.fetchQuery(siteQuery)
    if (!site.set_up) await navigate({ to: paths.setup() })
  }
  return (
    <>
      <Menu position="bottom-end" withArrow>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={t('common:user_menu', { name: me.name })}
          >
            <IconUser size={20} stroke={1.75} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{me.name}</Menu.Label>
          <Menu.Item
            leftSection={<IconSettings size={16} />}
            onClick={() => void navigate({ to: paths.settings() })}
          >
            {t('common:place.settings')}
          </Menu.Item>
          <Menu.Item leftSection={<IconHelp size={16} />} onClick={() => void navigate({ to: paths.help() })}>
            {t('common:place.help')}
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={leave}>
            {t('sign_out')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {!me.must_change_password && <RulesGate onLeave={leave} />}
      {me.must_change_password && (
        <Suspense>
          <FirstPasswordDialog onDone={() => void begin()} onLeave={leave} />
        </Suspense>
      )}
    </>
  )
}
