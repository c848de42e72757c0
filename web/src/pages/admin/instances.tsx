import { Group, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { useSort } from '../../app/use-sort'
import { everyonesInstancesQuery } from '../../api/instances'
import { IconSearch } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { InstanceActions } from '../instances/actions'
import { Resources } from '../../ui/resources'
import { InstanceState } from '../instances/state'

/** The instances of everybody: to see who holds what, and to stop it. */
export function AllInstancesSection() {
  const { t } = useTranslation(['admin', 'instances'])
  const { data, error, isPending, refetch } = useQuery(everyonesInstancesQuery)
  const sorting = useSort()
  const [search, setSearch] = useState('')
  const wanted = search.trim().toLowerCase()
  const shown = data?.filter(({ name, user, image }) =>
    `${name} ${user} ${image}`.toLowerCase().includes(wanted),
  )
  return (
    <Stack>
      <Group>
        <TextInput
          aria-label={t('all_instances.search')}
          w={{ base: '100%', xs: 300 }}
          placeholder={t('all_instances.search')}
          leftSection={<IconSearch size={16} />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {shown?.length === 0 && <Text c="dimmed">{t('all_instances.none')}</Text>}
      {shown && shown.length > 0 && (
        <Records
          label={t('section.instances')}
          rows={shown}
          rowId={(instance) => instance.id}
          heading="name"
          {...sorting}
          columns={[
            {
              id: 'name',
              header: t('instances:column.name'),
              cell: (instance) => <Text fw={600}>{instance.name}</Text>,
              sortBy: (instance) => instance.name,
            },
            {
              id: 'user',
              header: t('all_instances.user'),
              cell: (instance) => <Text size="sm">{instance.user}</Text>,
              sortBy: (instance) => instance.user,
            },
            {
              id: 'state',
              header: t('instances:column.state'),
              cell: (instance) => <InstanceState instance={instance} />,
              sortBy: (instance) => instance.status.state,
            },
            {
              id: 'resources',
              header: t('instances:column.resources'),
              cell: (instance) => <Resources asked={instance} />,
              sortBy: (instance) => instance.gpus,
            },
            {
              id: 'age',
              header: t('instances:column.age'),
              cell: (instance) => <TimeAgo at={instance.created_at} />,
              sortBy: (instance) => instance.created_at,
            },
          ]}
          actions={(instance) => <InstanceActions instance={instance} compact overseer />}
        />
      )}
    </Stack>
  )
}
