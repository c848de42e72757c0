import { Badge, Group, MultiSelect, SimpleGrid, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import {
  addNamed,
  groupsQuery,
  type NamedKind,
  refetchPeople,
  removeNamed,
  setMember,
  usersQuery,
  workspacesQuery,
} from '../../api/people'
import type { Group as UserGroup, Workspace } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { IconTrash } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Section } from '../../ui/section'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { addNamedCommand, apiRequest } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { QuotaButton } from './quota'

export function GroupsSection() {
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Groups />
      <Workspaces />
    </SimpleGrid>
  )
}

function Groups() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(groupsQuery)
  return (
    <Section title={t('groups.title')}>
      <Text size="sm" c="dimmed">
        {t('groups.text')}
      </Text>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.map((group) => (
        <NamedRow key={group.name} kind="group" name={group.name}>
          <GroupMembers group={group} />
        </NamedRow>
      ))}
      <AddNamed kind="group" />
    </Section>
  )
}

function GroupMembers({ group }: { group: UserGroup }) {
  const { t } = useTranslation('admin')
  if (group.members.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t('groups.nobody')}
      </Text>
    )
  }
  return (
    <Group gap={4}>
      {group.members.map((member) => (
        <Badge key={member} variant={group.leaders.includes(member) ? 'filled' : 'light'} tt="none">
          {group.leaders.includes(member) ? t('groups.leader', { name: member }) : member}
        </Badge>
      ))}
    </Group>
  )
}

function Workspaces() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(workspacesQuery)
  return (
    <Section title={t('workspaces.title')}>
      <Text size="sm" c="dimmed">
        {t('workspaces.text')}
      </Text>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.map((workspace) => (
        <NamedRow key={workspace.name} kind="workspace" name={workspace.name}>
          <WorkspaceMembers workspace={workspace} />
        </NamedRow>
      ))}
      <AddNamed kind="workspace" />
    </Section>
  )
}

function WorkspaceMembers({ workspace }: { workspace: Workspace }) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const { data: users = [] } = useQuery(usersQuery)
  const set = useMutation({
    mutationFn: ({ user, member }: { user: string; member: boolean }) =>
      setMember(workspace.name, user, member),
    onError: showTrouble,
    onSettled: () => refetchPeople(cache),
  })
  const change = (chosen: string[]) => {
    const before: string[] = workspace.members
    for (const user of chosen.filter((one) => !before.includes(one))) set.mutate({ user, member: true })
    for (const user of before.filter((one) => !chosen.includes(one))) set.mutate({ user, member: false })
  }
  return (
    <MultiSelect
      aria-label={t('workspaces.members', { name: workspace.name })}
      placeholder={t('workspaces.add_member')}
      searchable
      data={users.filter((user) => user.state.state !== 'removed').map((user) => user.name)}
      value={workspace.members}
      onChange={change}
    />
  )
}

interface NamedProps {
  kind: NamedKind
  name: string
  children: React.ReactNode
}

function NamedRow({ kind, name, children }: NamedProps) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const [asking, setAsking] = useState(false)
  const remove = useMutation({
    mutationFn: () => removeNamed(kind, name),
    onSuccess: () => showDone(t(`${kind}s.removed`, { name })),
    onError: showTrouble,
    onSettled: () => {
      setAsking(false)
      return refetchPeople(cache)
    },
  })
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <Stack gap={4} flex={1} miw={0}>
        <Text fw={600}>{name}</Text>
        {children}
      </Stack>
      {kind === 'group' && <QuotaButton owner={{ kind, name }} />}
      <ActionButton
        compact
        danger
        label={t(`${kind}s.remove`, { name })}
        icon={IconTrash}
        onClick={() => setAsking(true)}
      />
      <ConfirmDialog
        opened={asking}
        title={t(`${kind}s.remove_title`, { name })}
        confirm={t(`${kind}s.remove_confirm`)}
        busy={remove.isPending}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        <Text size="sm">{t(`${kind}s.remove_text`)}</Text>
      </ConfirmDialog>
    </Group>
  )
}

function AddNamed({ kind }: { kind: NamedKind }) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const form = useForm({
    initialValues: { name: '' },
    validate: { name: (text) => (text.trim() === '' ? t(`${kind}s.name_needed`) : null) },
  })
  const add = useMutation({
    mutationFn: ({ name }: { name: string }) => addNamed(kind, name.trim()),
    onSuccess: () => form.reset(),
    onSettled: () => refetchPeople(cache),
  })
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => add.mutate(values))}
    >
      <Stack gap="xs">
        {add.error && <Trouble error={add.error} />}
        <Group align="flex-end" gap="xs">
          <TextInput
            flex={1}
            miw={160}
            label={t(`${kind}s.new`)}
            description={t(`${kind}s.new_help`)}
            autoCapitalize="none"
            spellCheck={false}
            autoComplete="off"
            {...form.getInputProps('name')}
          />
          <SubmitButton label={t(`${kind}s.add`)} variant="default" busy={add.isPending} />
        </Group>
        <ShowAs
          command={addNamedCommand(kind, form.values.name.trim())}
          request={apiRequest('POST', `/${kind}s`, { name: form.values.name.trim() })}
        />
      </Stack>
    </form>
  )
}
