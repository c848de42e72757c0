import { Button, Group, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { type Keeper, removeSecret, secretsQuery } from '../../api/secrets'
import { meQuery } from '../../api/session'
import type { Secret } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { Dialog } from '../../ui/dialog'
import { EmptyState } from '../../ui/empty-state'
import { IconKey, IconPencil, IconPlus, IconTrash } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { SecretForm } from './secret-form'

/** One's own secrets, and for admins the logins that everyone's images come with. */
export function SecretsSection() {
  const { t } = useTranslation('settings')
  const { data: me } = useQuery(meQuery)
  return (
    <Stack gap="xl">
      <Secrets keeper="me" text={t('secrets.text')} label={t('section.secrets')} />
      {me?.role === 'admin' && (
        <Stack>
          <Title order={2} size="h4">
            {t('secrets.site')}
          </Title>
          <Secrets keeper="site" text={t('secrets.site_text')} label={t('secrets.site')} />
        </Stack>
      )}
    </Stack>
  )
}

/** What is open: a form for a new one, one for another value, or none. */
type Open = { old?: Secret } | null

function Secrets({ keeper, text, label }: { keeper: Keeper; text: string; label: string }) {
  const { t } = useTranslation('settings')
  const { data, error, isPending, refetch } = useQuery(secretsQuery(keeper))
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  const name = open?.old?.name
  return (
    <Stack>
      <Text c="dimmed">{text}</Text>
      {data && (
        <Group>
          <Button leftSection={<IconPlus size={18} />} onClick={() => setOpen({})}>
            {t(keeper === 'me' ? 'secrets.add' : 'secrets.add_site')}
          </Button>
        </Group>
      )}
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && keeper === 'me' && (
        <EmptyState
          icon={<IconKey size={48} stroke={1.25} />}
          title={t('secrets.none')}
          text={t('secrets.none_text')}
        />
      )}
      {data !== undefined && data.length > 0 && (
        <List keeper={keeper} label={label} secrets={data} onReplace={(old) => setOpen({ old })} />
      )}
      <Dialog
        opened={open !== null}
        stays
        onClose={close}
        title={
          name === undefined
            ? t(keeper === 'me' ? 'secrets.add' : 'secrets.add_site')
            : t('secrets.replace', { name })
        }
      >
        <SecretForm keeper={keeper} old={open?.old} onClose={close} />
      </Dialog>
    </Stack>
  )
}

interface ListProps {
  keeper: Keeper
  label: string
  secrets: Secret[]
  onReplace: (secret: Secret) => void
}

function List({ keeper, label, secrets, onReplace }: ListProps) {
  const { t } = useTranslation('settings')
  const cache = useQueryClient()
  const [removing, setRemoving] = useState<Secret | null>(null)
  const remove = useMutation({
    mutationFn: (secret: Secret) => removeSecret(keeper, secret.name),
    onSuccess: (_, secret) => showDone(t('secrets.removed', { name: secret.name })),
    onError: showTrouble,
    onSettled: () => {
      setRemoving(null)
      return cache.invalidateQueries({ queryKey: secretsQuery(keeper).queryKey })
    },
  })
  return (
    <>
      <Records
        label={label}
        rows={secrets}
        rowId={(secret) => secret.name}
        heading="name"
        columns={[
          {
            id: 'name',
            header: t('secrets.name'),
            cell: (secret) => (
              <Text fw={600} className="breakable">
                {secret.name}
              </Text>
            ),
          },
          {
            id: 'what',
            header: t('secrets.what'),
            cell: ({ registry }) => (
              <Text size="sm" className="breakable">
                {registry ? t('secrets.login', { ...registry }) : t('secrets.kind_value')}
              </Text>
            ),
          },
          {
            id: 'changed',
            header: t('secrets.changed'),
            cell: (secret) => <TimeAgo at={secret.changed_at} />,
          },
        ]}
        actions={(secret) => (
          <>
            <ActionButton
              compact
              label={t('secrets.replace', { name: secret.name })}
              icon={IconPencil}
              onClick={() => onReplace(secret)}
            />
            <ActionButton
              compact
              danger
              label={t('secrets.remove', { name: secret.name })}
              icon={IconTrash}
              onClick={() => setRemoving(secret)}
            />
          </>
        )}
      />
      <ConfirmDialog
        opened={removing !== null}
        title={t('secrets.remove_title', { name: removing?.name ?? '' })}
        confirm={t('secrets.remove_confirm')}
        busy={remove.isPending}
        onConfirm={() => removing && remove.mutate(removing)}
        onClose={() => setRemoving(null)}
      >
        <Text size="sm">{t('secrets.remove_text')}</Text>
      </ConfirmDialog>
    </>
  )
}
