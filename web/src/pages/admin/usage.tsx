import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { useSort } from '../../app/use-sort'
import { usageQuery } from '../../api/usage'
import { IconDownload } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { daysAgo } from '../../util/days'
import { formatBytes } from '../../util/format'
import { saveFile } from '../../util/save-file'
import { sumsOf, USAGE_KEYS, usageCsv, type UsageKey, type UsageSum } from '../../util/usage'

const DAYS = ['7', '30', '90', '365'] as const

/** Who has held how much for how long. */
export function UsageSection() {
  const { t } = useTranslation('admin')
  const navigate = useNavigate()
  const { days = '30', by = 'user' } = useSearch({ strict: false })
  const set = (change: { days?: string; by?: UsageKey }) =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...change }), replace: true })
  const since = daysAgo(Number(days) || 30)
  const { data, error, isPending, refetch } = useQuery(usageQuery(since))
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {t('usage.text')}
      </Text>
      <Group justify="space-between">
        <Group gap="xs">
          <SegmentedControl<UsageKey>
            aria-label={t('usage.by')}
            data={USAGE_KEYS.map((value) => ({ value, label: t(`usage.by_${value}`) }))}
            value={by}
            onChange={(value) => set({ by: value })}
          />
          <SegmentedControl
            aria-label={t('usage.time')}
            data={DAYS.map((value) => ({ value, label: t('usage.days', { count: Number(value) }) }))}
            value={days}
            onChange={(value) => set({ days: value })}
          />
        </Group>
        <Button
          variant="default"
          leftSection={<IconDownload size={18} />}
          onClick={() => saveFile(`usage-${days}d.csv`, usageCsv(data ?? []), 'text/csv')}
        >
          {t('usage.csv')}
        </Button>
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && <Text>{t('usage.none')}</Text>}
      {data && data.length > 0 && <Sums sums={sumsOf(data, by)} by={by} />}
    </Stack>
  )
}

const number = (text: string) => (
  <Text size="sm" className="numbers">
    {text}
  </Text>
)

function Sums({ sums, by }: { sums: UsageSum[]; by: UsageKey }) {
  const { t, i18n } = useTranslation('admin')
  const sorting = useSort()
  const hours = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 })
  return (
    <Records
      label={t('section.usage')}
      rows={sums}
      rowId={({ name }) => name}
      heading="name"
      {...sorting}
      columns={[
        {
          id: 'name',
          header: t(`usage.by_${by}`),
          cell: ({ name }) => <Text fw={600}>{name || t('usage.no_gpu')}</Text>,
          sortBy: ({ name }) => name,
        },
        {
          id: 'gpu_hours',
          header: t('usage.gpu_hours'),
          cell: ({ gpuHours }) => number(hours.format(gpuHours)),
          sortBy: ({ gpuHours }) => gpuHours,
        },
        {
          id: 'cpu_hours',
          header: t('usage.cpu_hours'),
          cell: ({ cpuHours }) => number(hours.format(cpuHours)),
          sortBy: ({ cpuHours }) => cpuHours,
        },
        {
          id: 'starts',
          header: t('usage.starts'),
          cell: ({ starts }) => number(String(starts)),
          sortBy: ({ starts }) => starts,
        },
        {
          id: 'images',
          header: t('usage.images'),
          cell: ({ imageBytes }) => number(formatBytes(imageBytes)),
          sortBy: ({ imageBytes }) => imageBytes,
        },
      ]}
    />
  )
}
