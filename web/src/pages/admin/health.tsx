import { Card, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { healthQuery } from '../../api/health'
import type { HealthPart } from '../../api/types'
import { IconAlert, IconCircleCheck } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { StateBadge } from '../../ui/state-badge'

export function HealthSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(healthQuery)
  const well = data?.every((part) => part.ok)
  return (
    <Stack maw={760}>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data && <Text role="status">{t(well ? 'health.well' : 'health.unwell')}</Text>}
      {data?.map((part) => (
        <Part key={part.name} part={part} />
      ))}
    </Stack>
  )
}

function Part({ part }: { part: HealthPart }) {
  const { t } = useTranslation('admin')
  // What is well says a word of its own first, as in `polled: …`.
  const word = part.ok ? part.message?.split(':')[0] : undefined
  return (
    <Card withBorder component="section" padding="sm" aria-label={part.name}>
      <Stack gap={4}>
        <Group justify="space-between">
          <Text fw={600}>{t(`health.part.${part.name}`, { defaultValue: part.name })}</Text>
          {part.ok ? (
            <StateBadge color="green" icon={IconCircleCheck} label={t('health.ok')} />
          ) : (
            <StateBadge color="red" icon={IconAlert} label={t('health.trouble')} />
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {t(`health.what.${part.name}`, { defaultValue: '' })}
        </Text>
        {part.message && (
          <Text size="sm" className="breakable">
            {word
              ? t(`health.note.${word}`, { defaultValue: part.message })
              : t('health.because', { message: part.message })}
          </Text>
        )}
        {!part.ok && (
          <Text size="sm">{t(`health.fix.${part.name}`, { defaultValue: t('health.fix_other') })}</Text>
        )}
      </Stack>
    </Card>
  )
}
