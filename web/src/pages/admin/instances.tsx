import { Anchor, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Filtered } from '../../app/filtered'
import { Trouble } from '../../app/trouble'
import { useSort } from '../../app/use-sort'
import { everyonesInstancesQuery } from '../../api/instances'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { paths } from '../../util/path-builder'
import { InstanceActions } from '../instances/actions'
import { Resources } from '../../ui/resources'
import { InstanceState } from '../instances/state'

/** The instances of everybody: to see who holds what, and to stop it. */
export function AllInstancesSection() {
  const { t } = useTranslation(['admin', 'instances'])
  const { data, error, isPending, refetch } = useQuery(everyonesInstancesQuery)
  const sorting = useSort()
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data?.length === 0 && <Text c="dimmed">{t('all_instances.none')}</Text>}
      {data && data.length > 0 && (
        <Filtered
          rows={data}
          label={t('all_instances.search')}
          text={({ name, user, image }) => `${name} ${user} ${image}`}
          state={({ status }) => status.state}
          stateLabel={(state) => t(`instances:state.${state}`, { defaultValue: state })}
          user={({ user }) => user}
        >
          {(shown) => (
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
                  cell: (instance) => (
                    <Anchor component={Link} to={paths.instance(instance.id)} fw={600} className="breakable">
                      {instance.name}
                    </Anchor>
                  ),
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
        </Filtered>
      )}
    </Stack>
  )
}
