import { Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { ownQuotaQuery } from '../../api/people'
import type { QuotaStanding } from '../../api/types'
import { Section } from '../../ui/section'
import { TimeAgo } from '../../ui/time-ago'
import { formatBytes } from '../../util/format'
import { barsOf, type QuotaBar } from '../../util/quota-bars'

/** What one and one's group may still take; nothing where nothing is limited. */
export function QuotaBars() {
  const { t } = useTranslation('home')
  const { data, error } = useQuery(ownQuotaQuery)
  if (error) return <Trouble error={error} />
  if (!data) return null
  const limited = [
    { key: 'mine', standing: data.user },
    { key: 'group', standing: data.group },
  ] as const
  const shown = limited.filter(({ standing }) => barsOf(standing).length > 0)
  if (shown.length === 0) return null
  return (
    <Section title={t('quota.title')}>
      <SimpleGrid cols={{ base: 1, sm: shown.length }}>
        {shown.map(({ key, standing }) => (
          <Standing key={key} title={t(`quota.${key}`, { name: standing.name })} standing={standing} />
        ))}
      </SimpleGrid>
    </Section>
  )
}

function Standing({ title, standing }: { title: string; standing: QuotaStanding }) {
  const { t } = useTranslation('home')
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {barsOf(standing).map((bar) => (
        <Bar key={`${bar.resource}${bar.model ?? ''}`} bar={bar} />
      ))}
      {standing.raised_until && (
        <Group gap={4}>
          <Text size="xs" c="dimmed">
            {t('quota.raised')}
          </Text>
          <TimeAgo at={standing.raised_until} />
        </Group>
      )}
    </Stack>
  )
}

function Bar({ bar: { resource, model, used, waiting, limit } }: { bar: QuotaBar }) {
  const { t } = useTranslation('home')
  const amount = (value: number) =>
    resource === 'memory' || resource === 'images' ? formatBytes(value) : String(Math.round(value * 10) / 10)
  const label = t(`quota.${resource}`, { model })
  const share = limit > 0 ? Math.min(100, (100 * used) / limit) : 100
  return (
    <Stack gap={2}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="sm" className="numbers">
          {t('quota.used', { used: amount(used), limit: amount(limit) })}
          {waiting > 0 && ` · ${t('quota.waiting', { waiting: amount(waiting) })}`}
        </Text>
      </Group>
      <Progress.Root size="md">
        <Progress.Section value={share} color={used >= limit ? 'orange' : undefined} aria-label={label} />
      </Progress.Root>
    </Stack>
  )
}
