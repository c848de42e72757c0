import { Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { AuditList } from '../../app/audit-list'
import { ACTS } from '../../app/audit-acts'
import { showTrouble } from '../../app/trouble'
import { useTyped } from '../../app/use-typed'
import { type AuditFilter, readAudit } from '../../api/audit'
import { IconDownload } from '../../ui/icons'
import { auditCsv } from '../../util/audit-csv'
import { daysAgo } from '../../util/days'
import { saveFile } from '../../util/save-file'

const SINCE = ['1', '7', '30'] as const
/** One below the other on a phone. */
const FIELD = { base: '1 1 100%', xs: '0 1 auto' }

export function AuditSection() {
  const { t } = useTranslation('admin')
  const navigate = useNavigate()
  const { actor, act, days } = useSearch({ strict: false })
  const set = (change: { actor?: string; act?: string; days?: string }) =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...change }), replace: true })
  const [typed, type] = useTyped(actor ?? '', (text) => set({ actor: text.trim() || undefined }))
  const filter = { actor, act, since: days && daysAgo(Number(days)) }
  const filtered = actor !== undefined || act !== undefined || days !== undefined
  return (
    <Stack>
      <Group align="flex-end" gap="xs">
        <TextInput
          flex={FIELD}
          label={t('audit.actor')}
          placeholder={t('audit.anyone')}
          value={typed}
          autoCapitalize="none"
          spellCheck={false}
          onChange={(event) => type(event.currentTarget.value)}
        />
        <Select
          flex={FIELD}
          label={t('audit.act')}
          placeholder={t('audit.anything')}
          clearable
          searchable
          data={ACTS.map((value) => ({
            value,
            label: t(`act.${value.replaceAll('.', '_')}`, { defaultValue: value }),
          }))}
          value={act ?? null}
          onChange={(value) => set({ act: value ?? undefined })}
        />
        <Select
          flex={FIELD}
          label={t('audit.since')}
          placeholder={t('audit.always')}
          clearable
          data={SINCE.map((value) => ({ value, label: t('audit.days', { count: Number(value) }) }))}
          value={days ?? null}
          onChange={(value) => set({ days: value ?? undefined })}
        />
        {filtered && (
          <Button variant="subtle" onClick={() => set({ actor: undefined, act: undefined, days: undefined })}>
            {t('audit.clear')}
          </Button>
        )}
        <Download filter={filter} />
      </Group>
      <AuditList whose="everyones" filter={filter} />
    </Stack>
  )
}

/** All that the filters let through, not only what is on the screen. */
function Download({ filter }: { filter: AuditFilter }) {
  const { t } = useTranslation('admin')
  const { mutate, isPending } = useMutation({
    mutationFn: () => readAudit(filter),
    onSuccess: (lines) => saveFile('audit.csv', auditCsv(lines), 'text/csv'),
    onError: showTrouble,
  })
  return (
    <Button
      ml="auto"
      variant="default"
      leftSection={<IconDownload size={18} />}
      loading={isPending}
      onClick={() => mutate()}
    >
      {t('usage.csv')}
    </Button>
  )
}
