import { Alert, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { clusterQuery, largestOf, nodesQuery } from '../../api/site'
import type { Node } from '../../api/types'
import { LoadingRows } from '../../ui/loading'
import { Section } from '../../ui/section'
import { formatBytes } from '../../util/format'
import { sumsByModel } from '../../util/free-blocks'

export function ClusterGlance() {
  const { t } = useTranslation('home')
  const { data, error, isPending, refetch } = useQuery(nodesQuery)
  return (
    <Section title={t('cluster')}>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={1} />}
      {data && <Sums nodes={data} />}
      <FreeGpus />
    </Section>
  )
}

function Sums({ nodes }: { nodes: Node[] }) {
  const { t } = useTranslation('home')
  const well = nodes.filter((node) => node.state.state === 'ready')
  const largest = largestOf(well)
  const sum = (of: (node: Node) => number) => well.reduce((total, node) => total + of(node), 0)
  const unwell = nodes.length - well.length
  return (
    <>
      {unwell > 0 && (
        <Alert color="yellow" role="status">
          {t('unwell', { count: unwell })}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, xs: 4 }}>
        <Figure label={t('nodes', { count: well.length })} value={String(well.length)} />
        <Figure label={t('cpus')} value={String(sum((node) => node.cpus))} />
        <Figure label={t('memory')} value={formatBytes(sum((node) => node.memory_bytes))} />
        <Figure label={t('gpus')} value={String(sum((node) => node.gpus))} />
      </SimpleGrid>
      {largest && (
        <Text size="sm" c="dimmed">
          {t('largest', {
            cpus: largest.cpus,
            memory: formatBytes(largest.memoryBytes),
            gpus: largest.gpus,
          })}
        </Text>
      )}
    </>
  )
}

function Figure({ label, value }: { label: string; value: string }) {
  return (
    <Stack gap={0}>
      <Text fw={700} size="xl" className="numbers">
        {value}
      </Text>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
    </Stack>
  )
}

/** What is free of each model, as one asks for it. */
function FreeGpus() {
  const { t } = useTranslation('home')
  const { data } = useQuery(clusterQuery)
  const models = sumsByModel(data?.nodes ?? [])
  if (models.length === 0) return null
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        {t('free_gpus')}
      </Text>
      {models.map(({ model, free, all }) => (
        <Group key={model} justify="space-between" gap="xs" wrap="nowrap">
          <Text size="sm" className="breakable">
            {model}
          </Text>
          <Text size="sm" className="numbers" style={{ whiteSpace: 'nowrap' }}>
            {t('free_of', { free, all })}
          </Text>
        </Group>
      ))}
    </Stack>
  )
}
