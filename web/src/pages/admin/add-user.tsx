import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { addUser, groupsQuery, refetchPeople } from '../../api/people'
import type { AddUser, NewPassword, Role } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { SecretOnce } from '../../ui/secret-once'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { addUserCommand, apiRequest } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'

const ROLES: readonly Role[] = ['user', 'leader', 'admin']

interface Props {
  opened: boolean
  onClose: () => void
}

export function AddUserDialog({ opened, onClose }: Props) {
  const { t } = useTranslation('admin')
  return (
    <Dialog opened={opened} onClose={onClose} stays title={t('users.add')}>
      <AddUserForm onClose={onClose} />
    </Dialog>
  )
}

interface Values {
  name: string
  role: Role
  group: string | null
}

function requestFrom({ name, role, group }: Values): AddUser {
  return { name: name.trim(), ...(role !== 'user' && { role }), ...(group && { group }) }
}

function AddUserForm({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const { data: groups = [] } = useQuery(groupsQuery)
  const form = useForm<Values>({
    initialValues: { name: '', role: 'user', group: null },
    validate: { name: (text) => (text.trim() === '' ? t('users.name_needed') : null) },
  })
  const add = useMutation({
    mutationFn: (values: Values) => addUser(requestFrom(values)),
    onSuccess: () => refetchPeople(cache),
  })
  if (add.data) return <FirstPassword made={add.data} onClose={onClose} />
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => add.mutate(values))}
    >
      <Stack>
        {add.error && <Trouble error={add.error} />}
        <TextInput
          label={t('users.name')}
          description={t('users.name_help')}
          autoCapitalize="none"
          spellCheck={false}
          autoComplete="off"
          data-autofocus
          {...form.getInputProps('name')}
        />
        <RoleSelect {...form.getInputProps('role')} />
        <Select
          label={t('users.group')}
          description={t('users.group_help')}
          placeholder={t('users.default_group')}
          clearable
          data={groups.map((group) => group.name)}
          {...form.getInputProps('group')}
        />
        <ShowAs
          command={addUserCommand(requestFrom(form.values))}
          request={apiRequest('POST', '/users', requestFrom(form.values))}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('users.add_submit')} busy={add.isPending} />
        </Group>
      </Stack>
    </form>
  )
}

interface RoleProps {
  value?: Role
  onChange?: (role: Role) => void
}

export function RoleSelect({ value, onChange }: RoleProps) {
  const { t } = useTranslation('admin')
  return (
    <Select
      label={t('users.role')}
      description={value && t(`role_help.${value}`)}
      allowDeselect={false}
      data={ROLES.map((role) => ({ value: role, label: t(`role.${role}`) }))}
      value={value}
      onChange={(chosen) => {
        const role = ROLES.find((one) => one === chosen)
        if (role) onChange?.(role)
      }}
    />
  )
}

/** The password that the gateway made, this once. */
export function FirstPassword({ made, onClose }: { made: NewPassword; onClose: () => void }) {
  const { t } = useTranslation('admin')
  return (
    <Stack>
      <SecretOnce
        title={t('users.password_once', { name: made.user.name })}
        secret={made.password}
        label={t('users.copy_password')}
      />
      <Text size="sm">{t('users.tell_them', { name: made.user.name })}</Text>
      <Group justify="flex-end">
        <Button onClick={onClose}>{t('users.told_them')}</Button>
      </Group>
    </Stack>
  )
}
