import { ActionIcon, Menu } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { signOut } from '../api/session'
import type { Me } from '../api/types'
import { IconKey, IconLogout, IconUser } from '../ui/icons'
import { paths } from '../util/path-builder'
import { PasswordDialog } from './password-dialog'
import { showTrouble } from './trouble'

export function UserMenu({ me }: { me: Me }) {
  const { t } = useTranslation(['session', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const [changing, setChanging] = useState(false)
  const first = me.must_change_password
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: async () => {
      await navigate({ href: paths.signIn() })
      cache.clear()
    },
    onError: showTrouble,
  })
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
          <Menu.Item leftSection={<IconKey size={16} />} onClick={() => setChanging(true)}>
            {t('change_password.title')}
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => leave.mutate()}>
            {t('sign_out')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <PasswordDialog
        opened={changing || first}
        first={first}
        onClose={() => setChanging(false)}
        onLeave={() => leave.mutate()}
      />
    </>
  )
}
