import { Anchor, Badge, Group, Progress, SimpleGrid, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { clusterQuery, clustersOf, gpusQuery, largestOf, nodesQuery } from '../../api/site'
import type { ClusterNode } from '../../api/types'
import { IconAlert, IconCircleCheck } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { StateBadge } from '../../ui/state-badge'
import { formatBytes } from '../../util/format'
import { largestFree, sumsByModel, sumsOfNodes } from '../../util/free-blocks'
import { paths } from '../../util/path-builder'
import { CardCell } from './card-cell'

/** What to look at before asking for a part of it. */
export function ClusterPage() {
  const { t } = useTranslation('cluster')
  const { data, error, isPending, refetch } = useQuery(clusterQuery)
  const several = clustersOf(data?.nodes ?? []).length > 1
  return (
    <Stack>
      <Group justify="space-between">
        <PageTitle>{t('title')}</PageTitle>
        {data && (
          <Group gap="xs">
            <Text size="sm">{t('waiting', { count: data.waiting })}</Text>
            <Anchor component={Link} to={paths.queue()} size="sm">
              {t('to_queue')}
            </Anchor>
          </Group>
        )}
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.nodes.length === 0 && <Text>{t('no_nodes')}</Text>}
      {data && data.nodes.length > 0 && (
        <>
          {data.nodes.length > 1 && <Together nodes={data.nodes} />}
          <Free nodes={data.nodes} />
          {data.nodes.map((node) => (
            <NodeCard key={`${node.cluster}/${node.name}`} node={node} several={several} />
          ))}
        </>
      )}
    </Stack>
  )
}

const cores = (cpus: number) => String(Math.round(cpus * 10) / 10)

/** The whole site at a glance. */
function Together({ nodes }: { nodes: ClusterNode[] }) {
  const { t } = useTranslation('cluster')
  const { cpus, memory, gpus } = sumsOfNodes(nodes)
  return (
    <Section title={t('together', { count: nodes.length })}>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Bar label={t('cpus')} {...cpus} format={cores} />
        <Bar label={t('memory')} {...memory} format={formatBytes} />
        <Bar label={t('gpus')} {...gpus} format={String} />
      </SimpleGrid>
    </Section>
  )
}

function Free({ nodes }: { nodes: ClusterNode[] }) {
  const { t } = useTranslation('cluster')
  const { data: machines = [] } = useQuery(nodesQuery)
  const block = largestFree(nodes, largestOf(machines)?.cpus)
  const models = sumsByModel(nodes)
  return (
    <Section title={t('largest')}>
      <Text size="sm" c="dimmed">
        {t('largest_text')}
      </Text>
      <SimpleGrid cols={3}>
        <Figure label={t('largest_cpus')} value={String(Math.floor(block.cpus * 10) / 10)} />
        <Figure label={t('largest_memory')} value={formatBytes(block.memoryBytes)} />
        <Figure label={t('largest_gpus')} value={String(block.gpus)} />
      </SimpleGrid>
      {models.length > 0 && (
        <Table aria-label={t('model')}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">{t('model')}</Table.Th>
              <Table.Th scope="col">{t('model_free')}</Table.Th>
              <Table.Th scope="col">{t('model_all')}</Table.Th>
              <Table.Th scope="col">{t('model_block')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody className="numbers">
            {models.map(({ model, free, all, block: most }) => (
              <Table.Tr key={model}>
                <Table.Th scope="row">{model}</Table.Th>
                <Table.Td>{free}</Table.Td>
                <Table.Td>{all}</Table.Td>
                <Table.Td>{most}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Section>
  )
}

function Figure({ label, value }: { label: string; value: string }) {
  return (
    <Stack gap={0}>
      <Text
        fw={700}
        size="xl"
        className="numbers"
        style={{ whiteSpace: 'nowrap' }}
        fz={{ base: 'lg', sm: 'xl' }}
      >
        {value}
      </Text>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
    </Stack>
  )
}

function NodeCard({ node, several }: { node: ClusterNode; several: boolean }) {
  const { t } = useTranslation('cluster')
  const { data: gpus = [] } = useQuery({ ...gpusQuery, enabled: node.cards.length > 0 })
  return (
    <Section
      title={node.name}
      aside={
        node.state.state === 'ready' ? (
          <StateBadge color="green" icon={IconCircleCheck} label={t('ready')} />
        ) : (
          <StateBadge color="red" icon={IconAlert} label={t('unwell')} />
        )
      }
    >
      {(several || node.pools) && (
        <Group gap="xs">
          {several && <Place>{t('in_cluster', { cluster: node.cluster })}</Place>}
          {node.pools?.map((pool) => (
            <Place key={pool}>{t('in_pool', { pool })}</Place>
          ))}
        </Group>
      )}
      {node.state.state === 'unwell' && (
        <Stack gap={4}>
          <Text size="sm">{t('unwell_text')}</Text>
          <Text size="sm" c="dimmed" className="breakable">
            {t('because', { message: node.state.message })}
          </Text>
        </Stack>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Bar label={t('cpus')} held={node.cpus_held} all={node.cpus} format={cores} />
        <Bar label={t('memory')} held={node.memory_held_bytes} all={node.memory_bytes} format={formatBytes} />
      </SimpleGrid>
      <Text size="sm" fw={600}>
        {t('cards')}
      </Text>
      {node.cards.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t('no_cards')}
        </Text>
      ) : (
        <SimpleGrid cols={{ base: 2, sm: 4, lg: 8 }} spacing="xs">
          {node.cards.map((card, index) => (
            <CardCell
              key={card.id}
              card={card}
              gpu={gpus.find(({ uuid }) => uuid === card.id)}
              number={index}
            />
          ))}
        </SimpleGrid>
      )}
    </Section>
  )
}

function Place({ children }: { children: string }) {
  return (
    <Badge variant="default" tt="none">
      {children}
    </Badge>
  )
}

interface BarProps {
  label: string
  held: number
  all: number
  format: (amount: number) => string
}

function Bar({ label, held, all, format }: BarProps) {
  const { t } = useTranslation('cluster')
  return (
    <Stack gap={4}>
      <Group justify="space-between">
        <Text size="sm">{label}</Text>
        <Text size="sm" className="numbers">
          {t('of', { held: format(held), all: format(all) })}
        </Text>
      </Group>
      <Progress.Root size="md">
        <Progress.Section value={all > 0 ? Math.min(100, (100 * held) / all) : 0} aria-label={label} />
      </Progress.Root>
    </Stack>
  )
}
