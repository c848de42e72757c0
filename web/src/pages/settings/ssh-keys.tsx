import { Badge, Button, Group, Stack, Text, Tooltip } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { removeSshKey, sshKeysQuery } from '../../api/ssh'
import type { SshKey } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { CopyField } from '../../ui/copy'
import { EmptyState } from '../../ui/empty-state'
import { IconKey, IconPlus, IconTrash } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { AddKeyDialog, MakePairDialog } from './key-dialogs'

export function SshKeysSection() {
  const { t } = useTranslation('settings')
  const { data, error, isPending, refetch } = useQuery(sshKeysQuery)
  return (
    <Stack>
      <Text c="dimmed">{t('ssh_keys.text')}</Text>
      {data && <KeyButtons />}
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && (
        <EmptyState
          icon={<IconKey size={48} stroke={1.25} />}
          title={t('ssh_keys.none')}
          text={t('ssh_keys.none_text')}
        />
      )}
      {data && data.length > 0 && <Keys keys={data} />}
    </Stack>
  )
}

/** Both ways to a key: one that is there already, or a new pair. */
export function KeyButtons() {
  const { t } = useTranslation('settings')
  const [open, setOpen] = useState<'add' | 'make' | null>(null)
  const close = () => setOpen(null)
  return (
    <Group gap="xs">
      <Button leftSection={<IconPlus size={18} />} onClick={() => setOpen('add')}>
        {t('ssh_keys.add')}
      </Button>
      <Button variant="default" leftSection={<IconKey size={18} />} onClick={() => setOpen('make')}>
        {t('ssh_keys.make')}
      </Button>
      <AddKeyDialog opened={open === 'add'} onClose={close} />
      <MakePairDialog opened={open === 'make'} onClose={close} />
    </Group>
  )
}

function Keys({ keys }: { keys: SshKey[] }) {
  const { t } = useTranslation('settings')
  const cache = useQueryClient()
  const [removing, setRemoving] = useState<SshKey | null>(null)
  const remove = useMutation({
    mutationFn: (key: SshKey) => removeSshKey(key.id),
    onSuccess: (_, key) => showDone(t('ssh_keys.removed', { name: key.name })),
    onError: showTrouble,
    onSettled: () => {
      setRemoving(null)
      return cache.invalidateQueries({ queryKey: sshKeysQuery.queryKey })
    },
  })
  return (
    <>
      <Records
        label={t('section.ssh-keys')}
        rows={keys}
        rowId={(key) => key.id}
        heading="name"
        columns={[
          { id: 'name', header: t('ssh_keys.name'), cell: (key) => <KeyName sshKey={key} /> },
          {
            id: 'fingerprint',
            header: t('ssh_keys.fingerprint'),
            cell: (key) => <CopyField text={key.fingerprint} />,
          },
          { id: 'added', header: t('ssh_keys.added'), cell: (key) => <TimeAgo at={key.created_at} /> },
          {
            id: 'used',
            header: t('ssh_keys.used'),
            cell: (key) => (key.last_used_at ? <TimeAgo at={key.last_used_at} /> : t('ssh_keys.never')),
          },
        ]}
        actions={(key) => (
          <ActionButton
            compact
            danger
            label={t('ssh_keys.remove', { name: key.name })}
            icon={IconTrash}
            onClick={() => setRemoving(key)}
          />
        )}
      />
      <ConfirmDialog
        opened={removing !== null}
        title={t('ssh_keys.remove_title', { name: removing?.name ?? '' })}
        confirm={t('ssh_keys.remove_confirm')}
        busy={remove.isPending}
        onConfirm={() => removing && remove.mutate(removing)}
        onClose={() => setRemoving(null)}
      >
        <Text size="sm">{t('ssh_keys.remove_text')}</Text>
      </ConfirmDialog>
    </>
  )
}

function KeyName({ sshKey }: { sshKey: SshKey }) {
  const { t } = useTranslation('settings')
  return (
    <Stack gap={2} align="flex-start">
      <Text fw={600} className="breakable">
        {sshKey.name}
      </Text>
      <Group gap="xs">
        <Text size="xs" c="dimmed">
          {sshKey.kind}
        </Text>
        {!sshKey.proved && (
          <Tooltip label={t('ssh_keys.unproved_text')} multiline maw={320}>
            <Badge size="sm" color="yellow" variant="light" tt="none" tabIndex={0}>
              {t('ssh_keys.unproved')}
            </Badge>
          </Tooltip>
        )}
      </Group>
    </Stack>
  )
}
