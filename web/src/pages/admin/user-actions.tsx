import { Button, Group, Select, Stack, Text } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import {
  changeUser,
  groupsQuery,
  refetchPeople,
  removeUser,
  resetPassword,
  restoreUser,
} from '../../api/people'
import { meQuery } from '../../api/session'
import type { User } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { Dialog } from '../../ui/dialog'
import { IconBan, IconKey, IconPlay, IconRestart, IconSettings, IconTrash } from '../../ui/icons'
import { ReasonedButton } from '../../ui/reasoned-button'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, changeUserCommand } from '../../util/cli-command'
import { FirstPassword, RoleSelect } from './add-user'
import { QuotaButton } from './quota'

type Asked = 'change' | 'reset' | 'disable' | 'remove' | null

export function UserActions({ user }: { user: User }) {
  const { t } = useTranslation('admin')
  const [asked, setAsked] = useState<Asked>(null)
  const { data: me } = useQuery(meQuery)
  const { enable, restore } = useSimpleActs(user)
  const close = () => setAsked(null)
  const removed = user.state.state === 'removed'
  // Leaders see those of their group; only admins change anybody.
  const admin = me?.role === 'admin' ? undefined : t('users.only_admins')
  const gone = admin ?? (removed ? t('users.is_removed') : undefined)
  const self = admin ?? (me?.name === user.name ? t('users.is_self') : undefined)
  return (
    <Group gap={2} wrap="nowrap">
      <ActionButton
        compact
        label={t('users.change', { name: user.name })}
        icon={IconSettings}
        reason={gone}
        onClick={() => setAsked('change')}
      />
      <ActionButton
        compact
        label={t('users.reset', { name: user.name })}
        icon={IconKey}
        reason={gone}
        onClick={() => setAsked('reset')}
      />
      <QuotaButton
        owner={{ kind: 'user', name: user.name }}
        reason={removed ? t('users.is_removed') : undefined}
      />
      {user.state.state === 'disabled' ? (
        <ActionButton
          compact
          label={t('users.enable', { name: user.name })}
          icon={IconPlay}
          reason={admin}
          busy={enable.isPending}
          onClick={() => enable.mutate()}
        />
      ) : (
        <ActionButton
          compact
          label={t('users.disable', { name: user.name })}
          icon={IconBan}
          reason={gone ?? self}
          onClick={() => setAsked('disable')}
        />
      )}
      {removed ? (
        <ActionButton
          compact
          label={t('users.restore', { name: user.name })}
          icon={IconRestart}
          reason={admin}
          busy={restore.isPending}
          onClick={() => restore.mutate()}
        />
      ) : (
        <ActionButton
          compact
          danger
          label={t('users.remove', { name: user.name })}
          icon={IconTrash}
          reason={self}
          onClick={() => setAsked('remove')}
        />
      )}
      <Dialog
        typed
        opened={asked === 'change'}
        title={t('users.change', { name: user.name })}
        onClose={close}
      >
        <ChangeForm user={user} onClose={close} />
      </Dialog>
      <ResetDialog user={user} opened={asked === 'reset'} onClose={close} />
      <LosingDialog user={user} act="disable" opened={asked === 'disable'} onClose={close} />
      <LosingDialog user={user} act="remove" opened={asked === 'remove'} onClose={close} />
    </Group>
  )
}

/** What gives back and takes nothing. */
function useSimpleActs(user: User) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const after = { onError: showTrouble, onSettled: () => refetchPeople(cache) }
  const enable = useMutation({
    mutationFn: () => changeUser(user.name, { disabled: false }),
    onSuccess: () => showDone(t('users.enabled_done', { name: user.name })),
    ...after,
  })
  const restore = useMutation({
    mutationFn: () => restoreUser(user.name),
    onSuccess: () => showDone(t('users.restored_done', { name: user.name })),
    ...after,
  })
  return { enable, restore }
}

function ChangeForm({ user, onClose }: { user: User; onClose: () => void }) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const { data: groups = [] } = useQuery(groupsQuery)
  const form = useForm({ initialValues: { role: user.role, group: user.group } })
  const { role, group } = form.values
  const wanted = { ...(role !== user.role && { role }), ...(group !== user.group && { group }) }
  const change = useMutation({
    mutationFn: () => changeUser(user.name, wanted),
    onSuccess: async () => {
      showDone(t('users.changed_done', { name: user.name }))
      onClose()
      await refetchPeople(cache)
    },
  })
  return (
    <form onSubmit={form.onSubmit(() => change.mutate())}>
      <Stack>
        {change.error && <Trouble error={change.error} />}
        <RoleSelect {...form.getInputProps('role')} />
        <Select
          label={t('users.group')}
          description={t('users.group_help')}
          allowDeselect={false}
          data={[...new Set([user.group, ...groups.map(({ name }) => name)])]}
          {...form.getInputProps('group')}
        />
        {form.isDirty() && (
          <ShowAs
            command={changeUserCommand(user.name, wanted)}
            request={apiRequest('PATCH', `/users/${user.name}`, wanted)}
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton
            label={t('common:save')}
            busy={change.isPending}
            reason={form.isDirty() ? undefined : t('common:unchanged')}
          />
        </Group>
      </Stack>
    </form>
  )
}

interface DialogProps {
  user: User
  opened: boolean
  onClose: () => void
}

function ResetDialog({ user, opened, onClose }: DialogProps) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const reset = useMutation({
    mutationFn: () => resetPassword(user.name),
    onSuccess: () => refetchPeople(cache),
  })
  const leave = () => {
    onClose()
    reset.reset()
  }
  return (
    <Dialog opened={opened} onClose={leave} stays title={t('users.reset', { name: user.name })}>
      {reset.data ? (
        <FirstPassword made={reset.data} onClose={leave} />
      ) : (
        <Stack>
          {reset.error && <Trouble error={reset.error} />}
          <Text size="sm">{t('users.reset_text')}</Text>
          <Group justify="flex-end">
            <Button variant="default" data-autofocus onClick={leave}>
              {t('common:cancel')}
            </Button>
            <ReasonedButton
              label={t('users.reset_confirm')}
              color="red"
              busy={reset.isPending}
              onClick={() => reset.mutate()}
            />
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}

function LosingDialog({ user, act, opened, onClose }: DialogProps & { act: 'disable' | 'remove' }) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const lose = useMutation({
    mutationFn: () => (act === 'disable' ? changeUser(user.name, { disabled: true }) : removeUser(user.name)),
    onSuccess: () => showDone(t(`users.${act}_done`, { name: user.name })),
    onError: showTrouble,
    onSettled: () => {
      onClose()
      return refetchPeople(cache)
    },
  })
  return (
    <ConfirmDialog
      opened={opened}
      title={t(`users.${act}_title`, { name: user.name })}
      confirm={t(`users.${act}_confirm`)}
      busy={lose.isPending}
      onConfirm={() => lose.mutate()}
      onClose={onClose}
    >
      <Text size="sm">{t(`users.${act}_lost`)}</Text>
      <Text size="sm">{t(`users.${act}_kept`)}</Text>
    </ConfirmDialog>
  )
}
