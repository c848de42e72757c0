import { Anchor, Card, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { Filtered } from '../../app/filtered'
import { useClusters } from '../../app/place-select'
import { Trouble } from '../../app/trouble'
import { instancesQuery } from '../../api/instances'
import type { Instance } from '../../api/types'
import { type DataColumn, DataTable } from '../../ui/data-table'
import { EmptyState } from '../../ui/empty-state'
import { IconBox } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { TimeAgo } from '../../ui/time-ago'
import type { FilterSearch } from '../../util/filter'
import { paths } from '../../util/path-builder'
import { InstanceActions } from './actions'
import { CreateButton } from './create-button'
import { Resources } from '../../ui/resources'
import { InstanceState } from './state'
import { TensorboardButton } from './tensorboard-dialog'

const route = getRouteApi('/signed-in/instances')

/** Sorting as it stands in the URL: the column, with a minus for descending. */
export interface InstancesSearch extends FilterSearch {
  sort?: string
}

export function InstancesPage() {
  const { t } = useTranslation('instances')
  const { data, error, isPending, refetch } = useQuery(instancesQuery)
  const empty = data?.length === 0
  return (
    <Stack>
      <Group justify="space-between">
        <PageTitle>{t('title')}</PageTitle>
        {!empty && <Buttons />}
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {empty && (
        <EmptyState
          icon={<IconBox size={48} stroke={1.25} />}
          title={t('empty.title')}
          text={t('empty.text')}
          action={<Buttons justify="center" />}
        />
      )}
      {data && !empty && (
        <Filtered
          rows={data}
          label={t('find')}
          text={({ name, image }) => `${name} ${image}`}
          state={({ status }) => status.state}
          stateLabel={(state) => t(`state.${state}`, { defaultValue: state })}
        >
          {(shown) => <InstanceList instances={shown} />}
        </Filtered>
      )}
    </Stack>
  )
}

function Buttons({ justify }: { justify?: 'center' }) {
  return (
    // Where they do not fit beside each other, what most people want comes first.
    <Group gap="xs" justify={justify} style={{ flexWrap: 'wrap-reverse' }}>
      <TensorboardButton />
      <CreateButton />
    </Group>
  )
}

function InstanceList({ instances }: { instances: Instance[] }) {
  const wide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  return wide ? <InstanceTable instances={instances} /> : <InstanceCards instances={instances} />
}

function InstanceTable({ instances }: { instances: Instance[] }) {
  const { t } = useTranslation('instances')
  const { sort } = route.useSearch()
  const navigate = route.useNavigate()
  const several = useClusters().length > 1
  const columns = useMemo(
    (): DataColumn<Instance>[] => [
      {
        id: 'name',
        accessorKey: 'name',
        header: t('column.name'),
        cell: ({ row }) => <NameLink instance={row.original} />,
        sortFn: 'alphanumeric',
      },
      {
        id: 'state',
        accessorFn: (instance) => t(`state.${instance.status.state}`),
        header: t('column.state'),
        cell: ({ row }) => <InstanceState instance={row.original} />,
        sortFn: 'text',
      },
      {
        id: 'image',
        accessorKey: 'image',
        header: t('column.image'),
        cell: ({ row }) => <ImageName image={row.original.image} />,
        sortFn: 'text',
      },
      {
        id: 'resources',
        header: t('column.resources'),
        cell: ({ row }) => <Resources asked={row.original} />,
        enableSorting: false,
      },
      ...(several
        ? [
            {
              id: 'cluster',
              accessorKey: 'cluster',
              header: t('column.cluster'),
              cell: ({ row }) => <Text size="sm">{row.original.cluster}</Text>,
              sortFn: 'text',
            } satisfies DataColumn<Instance>,
          ]
        : []),
      {
        id: 'age',
        accessorKey: 'created_at',
        header: t('column.age'),
        cell: ({ row }) => <TimeAgo at={row.original.created_at} />,
        sortFn: 'text',
      },
      {
        id: 'actions',
        header: t('column.actions'),
        cell: ({ row }) => <InstanceActions instance={row.original} compact />,
        enableSorting: false,
      },
    ],
    [t, several],
  )
  const sorting = useMemo(
    () => (sort ? [{ id: sort.replace(/^-/, ''), desc: sort.startsWith('-') }] : []),
    [sort],
  )
  return (
    <DataTable
      label={t('title')}
      rows={instances}
      columns={columns}
      rowId={(instance) => instance.id}
      headingColumn="name"
      sorting={sorting}
      onSort={([first]) =>
        void navigate({
          search: (before) => ({ ...before, sort: first && `${first.desc ? '-' : ''}${first.id}` }),
          replace: true,
        })
      }
      sortLabel={(column) => t('sort_by', { column: t(`column.${column}`, { defaultValue: column }) })}
    />
  )
}

function InstanceCards({ instances }: { instances: Instance[] }) {
  return (
    <SimpleGrid cols={1}>
      {instances.map((instance) => (
        <Card key={instance.id} withBorder component="article" aria-label={instance.name}>
          <Stack gap="xs">
            <Group justify="space-between" align="flex-start">
              <NameLink instance={instance} />
              <InstanceState instance={instance} />
            </Group>
            <ImageName image={instance.image} />
            <Group justify="space-between">
              <Resources asked={instance} />
              <TimeAgo at={instance.created_at} />
            </Group>
            <InstanceActions instance={instance} compact />
          </Stack>
        </Card>
      ))}
    </SimpleGrid>
  )
}

function NameLink({ instance }: { instance: Instance }) {
  return (
    <Anchor component={Link} to={paths.instance(instance)} fw={600}>
      {instance.name}
    </Anchor>
  )
}

function ImageName({ image }: { image: string }) {
  return (
    <Text size="sm" className="breakable" miw={120}>
      {image}
    </Text>
  )
}
