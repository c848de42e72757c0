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

const LATER_KEY = 'berth.password-later'

/** Postponed until the next sign-in, not for ever. */
function postponed(): boolean {
  try {
    return sessionStorage.getItem(LATER_KEY) !== null
  } catch {
    return false
  }
}

export function setPostponed(later: boolean) {
  try {
    if (later) sessionStorage.setItem(LATER_KEY, '1')
    else sessionStorage.removeItem(LATER_KEY)
  } catch {
    // Without storage the question merely comes again after a reload.
  }
}

export function UserMenu({ me }: { me: Me }) {
  const { t } = useTranslation(['session', 'common'])
  const cache = useQueryClient()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<'first' | 'change' | null>(() =>
    me.must_change_password && !postponed() ? 'first' : null,
  )
  // What the dialog says must not change while it fades out.
  const [first, setFirst] = useState(dialog === 'first')
  const leave = useMutation({
    mutationFn: signOut,
    onSuccess: async () => {
      await navigate({ href: paths.signIn() })
      cache.clear()
    },
    onError: showTrouble,
  })
  const close = () => {
    setPostponed(true)
    setDialog(null)
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
            leftSection={<IconKey size={16} />}
            onClick={() => {
              setFirst(false)
              setDialog('change')
            }}
          >
            {t('change_password.title')}
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => leave.mutate()}>
            {t('sign_out')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <PasswordDialog opened={dialog !== null} first={first} onClose={close} />
    </>
  )
}
