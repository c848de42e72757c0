import { Alert, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { nodesQuery } from '../../api/site'
import type { Node } from '../../api/types'
import { CopyField } from '../../ui/copy'
import { IconAlert, IconCircleCheck } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { StateBadge } from '../../ui/state-badge'
import { formatBytes } from '../../util/format'

export function NodesSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(nodesQuery)
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && <Text c="dimmed">{t('nodes.none')}</Text>}
      {data && data.length > 0 && (
        <Records
          label={t('section.nodes')}
          rows={data}
          rowId={(node) => `${node.cluster}/${node.name}`}
          heading="name"
          columns={[
            { id: 'name', header: t('nodes.name'), cell: (node) => <Text fw={600}>{node.name}</Text> },
            {
              id: 'address',
              header: t('nodes.address'),
              cell: (node) => node.address && <CopyField text={node.address} />,
            },
            {
              id: 'cluster',
              header: t('nodes.cluster'),
              cell: (node) => <Text size="sm">{[node.cluster, ...(node.pools ?? [])].join(' · ')}</Text>,
            },
            { id: 'state', header: t('nodes.state'), cell: (node) => <NodeStanding node={node} /> },
            { id: 'cpus', header: t('nodes.cpus'), cell: (node) => <Text size="sm">{node.cpus}</Text> },
            {
              id: 'memory',
              header: t('nodes.memory'),
              cell: (node) => <Text size="sm">{formatBytes(node.memory_bytes)}</Text>,
            },
            { id: 'gpus', header: t('nodes.gpus'), cell: (node) => <Text size="sm">{node.gpus}</Text> },
          ]}
        />
      )}
      {data?.map((node) => (
        <Unknown key={`${node.cluster}/${node.name}`} node={node} />
      ))}
    </Stack>
  )
}

function NodeStanding({ node }: { node: Node }) {
  const { t } = useTranslation('admin')
  if (node.state.state === 'ready') {
    return <StateBadge color="green" icon={IconCircleCheck} label={t('nodes.ready')} />
  }
  return (
    <Stack gap={4} align="flex-start">
      <StateBadge color="red" icon={IconAlert} label={t('nodes.unwell')} />
      <Text size="xs" c="dimmed" className="breakable">
        {t('nodes.because', { message: node.state.message })}
      </Text>
    </Stack>
  )
}

/** Containers of a Berth that this store does not know of, as after a backup was restored. */
function Unknown({ node }: { node: Node }) {
  const { t } = useTranslation('admin')
  const unknown = node.unknown ?? []
  if (unknown.length === 0) return null
  return (
    <Alert color="yellow" icon={<IconAlert />} title={t('nodes.unknown', { node: node.name })}>
      <Stack gap={4} align="flex-start">
        <Text size="sm">{t('nodes.unknown_text')}</Text>
        {unknown.map((container) => (
          <CopyField key={container} text={container} />
        ))}
      </Stack>
    </Alert>
  )
}
