import { Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Filtered } from '../../app/filtered'
import { Trouble } from '../../app/trouble'
import { useSort } from '../../app/use-sort'
import { usersQuery } from '../../api/people'
import { meQuery } from '../../api/session'
import type { User } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { IconBan, IconCircleCheck, IconTrash, IconUserPlus } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { StateBadge } from '../../ui/state-badge'
import { TimeAgo } from '../../ui/time-ago'
import { never } from '../../util/never'
import { AddUserDialog } from './add-user'
import { UserActions } from './user-actions'

export function UsersSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(usersQuery)
  const { data: me } = useQuery(meQuery)
  const [adding, setAdding] = useState(false)
  const add = (
    <ActionButton
      primary
      label={t('users.add')}
      icon={IconUserPlus}
      reason={me?.role === 'admin' ? undefined : t('users.only_admins')}
      onClick={() => setAdding(true)}
    />
  )
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data && (
        <Filtered
          rows={data}
          label={t('users.search')}
          text={({ name, group }) => `${name} ${group}`}
          state={({ state }) => state.state}
          stateLabel={(state) => t(`users.${state}`, { defaultValue: state })}
          aside={add}
        >
          {(shown) => <Users users={shown} />}
        </Filtered>
      )}
      <AddUserDialog opened={adding} onClose={() => setAdding(false)} />
    </Stack>
  )
}

function Users({ users }: { users: User[] }) {
  const { t } = useTranslation('admin')
  const sorting = useSort()
  return (
    <Records
      label={t('section.users')}
      rows={users}
      rowId={(user) => user.name}
      heading="name"
      {...sorting}
      columns={[
        {
          id: 'name',
          header: t('users.name'),
          cell: (user) => <Text fw={600}>{user.name}</Text>,
          sortBy: (user) => user.name,
        },
        {
          id: 'state',
          header: t('users.state'),
          cell: (user) => <UserStanding user={user} />,
          sortBy: (user) => user.state.state,
        },
        {
          id: 'role',
          header: t('users.role'),
          cell: (user) => <Text size="sm">{t(`role.${user.role}`)}</Text>,
          sortBy: (user) => user.role,
        },
        {
          id: 'group',
          header: t('users.group'),
          cell: (user) => <Text size="sm">{user.group}</Text>,
          sortBy: (user) => user.group,
        },
        {
          id: 'workspaces',
          header: t('users.workspaces'),
          cell: (user) => <Text size="sm">{user.workspaces.join(', ') || t('none')}</Text>,
        },
        {
          id: 'created',
          header: t('users.created'),
          cell: (user) => <TimeAgo at={user.created_at} />,
          sortBy: (user) => user.created_at,
        },
      ]}
      actions={(user) => <UserActions user={user} />}
    />
  )
}

function UserStanding({ user }: { user: User }) {
  const { t } = useTranslation('admin')
  const { state } = user
  switch (state.state) {
    case 'active':
      return (
        <Stack gap={4} align="flex-start">
          <StateBadge color="green" icon={IconCircleCheck} label={t('users.active')} />
          {user.must_change_password && (
            <Text size="xs" c="dimmed">
              {t('users.must_change')}
            </Text>
          )}
        </Stack>
      )
    case 'disabled':
      return <StateBadge color="orange" icon={IconBan} label={t('users.disabled')} />
    case 'removed':
      return (
        <Stack gap={4} align="flex-start">
          <StateBadge color="gray" icon={IconTrash} label={t('users.removed')} />
          <Group gap={4}>
            <Text size="xs" c="dimmed">
              {t('users.until')}
            </Text>
            <TimeAgo at={state.until} />
          </Group>
        </Stack>
      )
    default:
      return never(state)
  }
}
