import { Button, Group, NumberInput, SegmentedControl, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { addToken, removeToken, tokensQuery } from '../../api/tokens'
import type { AddToken, ApiToken, Scope } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { CopyField } from '../../ui/copy'
import { Dialog } from '../../ui/dialog'
import { EmptyState } from '../../ui/empty-state'
import { IconKey, IconPlus, IconTrash } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { SecretOnce } from '../../ui/secret-once'
import { ShowAs } from '../../ui/show-as'
import { TimeAgo } from '../../ui/time-ago'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, tokenCommand, tokenNewCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { originForPrograms } from '../../util/own-address'

const LONGEST_DAYS = 366

export function TokensSection() {
  const { t } = useTranslation('settings')
  const { data, error, isPending, refetch } = useQuery(tokensQuery)
  const some = data !== undefined && data.length > 0
  return (
    <Stack>
      <Text c="dimmed">{t('tokens.text')}</Text>
      {/* In one place for good: it shows the secret of a token that was just made. */}
      {data && <AddButton />}
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && (
        <EmptyState
          icon={<IconKey size={48} stroke={1.25} />}
          title={t('tokens.none')}
          text={t('tokens.none_text')}
        />
      )}
      {some && <Tokens tokens={data} />}
    </Stack>
  )
}

function AddButton() {
  const { t } = useTranslation('settings')
  const [opened, setOpened] = useState(false)
  return (
    <Group>
      <Button leftSection={<IconPlus size={18} />} onClick={() => setOpened(true)}>
        {t('tokens.add')}
      </Button>
      <Dialog opened={opened} stays onClose={() => setOpened(false)} title={t('tokens.add')}>
        <AddTokenForm onClose={() => setOpened(false)} />
      </Dialog>
    </Group>
  )
}

interface TokenValues {
  name: string
  scope: Scope
  days: number | string
}

function tokenFrom({ name, scope, days }: TokenValues): AddToken {
  return { name: name.trim(), scope, days: Number(days) }
}

function AddTokenForm({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(['settings', 'common'])
  const cache = useQueryClient()
  const form = useForm<TokenValues>({
    initialValues: { name: '', scope: 'all', days: 90 },
    validate: {
      name: (text) => (text.trim() === '' ? t('tokens.name_needed') : null),
      days: (days) =>
        Number.isInteger(Number(days)) && Number(days) >= 1 && Number(days) <= LONGEST_DAYS
          ? null
          : t('tokens.days_wrong', { most: LONGEST_DAYS }),
    },
  })
  const add = useMutation({
    mutationFn: (values: TokenValues) => addToken(tokenFrom(values)),
    onSuccess: () => cache.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  })
  if (add.data) {
    return (
      <Stack>
        <SecretOnce title={t('tokens.once')} secret={add.data.secret} label={t('tokens.copy')} />
        <Text size="sm">{t('tokens.use')}</Text>
        <CopyField block text={tokenCommand(originForPrograms(window.location))} />
        <Group justify="flex-end">
          <Button onClick={onClose}>{t('tokens.saved_it')}</Button>
        </Group>
      </Stack>
    )
  }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => add.mutate(values))}
    >
      <Stack>
        {add.error && <Trouble error={add.error} />}
        <TextInput
          label={t('tokens.name')}
          description={t('tokens.name_help')}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            {t('tokens.scope')}
          </Text>
          <SegmentedControl<Scope>
            aria-label={t('tokens.scope')}
            data={[
              { value: 'all', label: t('tokens.scope_all') },
              { value: 'read', label: t('tokens.scope_read') },
            ]}
            {...form.getInputProps('scope')}
          />
          <Text size="xs" c="dimmed">
            {t(form.values.scope === 'all' ? 'tokens.scope_all_help' : 'tokens.scope_read_help')}
          </Text>
        </Stack>
        <NumberInput
          label={t('tokens.days')}
          description={t('tokens.days_help')}
          min={1}
          max={LONGEST_DAYS}
          allowDecimal={false}
          clampBehavior="none"
          {...form.getInputProps('days')}
        />
        <ShowAs
          command={tokenNewCommand(tokenFrom(form.values))}
          request={apiRequest('POST', '/tokens', tokenFrom(form.values))}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('tokens.submit')} busy={add.isPending} />
        </Group>
      </Stack>
    </form>
  )
}

function Tokens({ tokens }: { tokens: ApiToken[] }) {
  const { t } = useTranslation('settings')
  const cache = useQueryClient()
  const [removing, setRemoving] = useState<ApiToken | null>(null)
  const remove = useMutation({
    mutationFn: (token: ApiToken) => removeToken(token.id),
    onSuccess: (_, token) => showDone(t('tokens.removed', { name: token.name })),
    onError: showTrouble,
    onSettled: () => {
      setRemoving(null)
      return cache.invalidateQueries({ queryKey: tokensQuery.queryKey })
    },
  })
  return (
    <>
      <Records
        label={t('section.tokens')}
        rows={tokens}
        rowId={(token) => token.id}
        heading="name"
        columns={[
          {
            id: 'name',
            header: t('tokens.name'),
            cell: (token) => (
              <Text fw={600} className="breakable">
                {token.name}
              </Text>
            ),
          },
          {
            id: 'scope',
            header: t('tokens.scope'),
            cell: (token) => (
              <Text size="sm">{t(token.scope === 'all' ? 'tokens.scope_all' : 'tokens.scope_read')}</Text>
            ),
          },
          { id: 'expires', header: t('tokens.expires'), cell: (token) => <TimeAgo at={token.expires_at} /> },
          {
            id: 'used',
            header: t('tokens.used'),
            cell: (token) => (token.last_used_at ? <TimeAgo at={token.last_used_at} /> : t('ssh_keys.never')),
          },
        ]}
        actions={(token) => (
          <ActionButton
            compact
            danger
            label={t('tokens.remove', { name: token.name })}
            icon={IconTrash}
            onClick={() => setRemoving(token)}
          />
        )}
      />
      <ConfirmDialog
        opened={removing !== null}
        title={t('tokens.remove_title', { name: removing?.name ?? '' })}
        confirm={t('tokens.remove_confirm')}
        busy={remove.isPending}
        onConfirm={() => removing && remove.mutate(removing)}
        onClose={() => setRemoving(null)}
      >
        <Text size="sm">{t('tokens.remove_text')}</Text>
      </ConfirmDialog>
    </>
  )
}
