import { Card, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { type DataColumn, DataTable } from './data-table'

export interface RecordColumn<T> {
  id: string
  header: string
  cell: (row: T) => ReactNode
  /** Gives the column a button that sorts by it. */
  sortBy?: (row: T) => string | number
}

interface Props<T extends object> {
  label: string
  rows: T[]
  columns: RecordColumn<T>[]
  rowId: (row: T) => string
  /** The column that names a row. */
  heading: string
  /** What can be done with a row; the last column. */
  actions?: (row: T) => ReactNode
  /** The column to sort by, with a minus for descending. */
  sort?: string
  onSort?: (sort: string | undefined) => void
}

/** Things of one kind: a table where there is room for one, cards where there is not. */
export function Records<T extends object>(props: Props<T>) {
  const wide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  return wide ? <RecordTable {...props} /> : <RecordCards {...props} />
}

function RecordTable<T extends object>(props: Props<T>) {
  const { t } = useTranslation()
  const { rows, columns, actions, sort, onSort } = props
  const drawn = useMemo((): DataColumn<T>[] => {
    const [one] = rows
    const made = columns.map((column): DataColumn<T> => ({
      id: column.id,
      header: column.header,
      accessorFn: (row) => column.sortBy?.(row) ?? '',
      cell: ({ row }) => column.cell(row.original),
      // What people call 2 is before what they call 10; a number has its own order, also behind the point.
      sortFn: one && typeof column.sortBy?.(one) === 'number' ? 'basic' : 'alphanumeric',
      enableSorting: onSort !== undefined && column.sortBy !== undefined,
    }))
    if (actions) {
      made.push({
        id: 'actions',
        header: t('actions'),
        cell: ({ row }) => actions(row.original),
        enableSorting: false,
      })
    }
    return made
  }, [rows, columns, actions, onSort, t])
  const sorting = useMemo(
    () => (sort ? [{ id: sort.replace(/^-/, ''), desc: sort.startsWith('-') }] : []),
    [sort],
  )
  return (
    <DataTable
      label={props.label}
      rows={rows}
      columns={drawn}
      rowId={props.rowId}
      headingColumn={props.heading}
      sorting={sorting}
      onSort={([first]) => onSort?.(first && `${first.desc ? '-' : ''}${first.id}`)}
      sortLabel={(id) => t('sort_by', { column: columns.find((column) => column.id === id)?.header ?? id })}
    />
  )
}

function RecordCards<T extends object>({ rows, columns, rowId, heading, actions }: Props<T>) {
  return (
    <SimpleGrid cols={1} spacing="sm">
      {rows.map((row) => (
        <Card key={rowId(row)} withBorder component="article" padding="sm">
          <Stack gap={6}>
            {columns.map((column) => {
              const cell = column.cell(row)
              if (cell === null) return null
              return column.id === heading ? (
                <div key={column.id}>{cell}</div>
              ) : (
                <Group key={column.id} gap="xs" wrap="nowrap" align="flex-start">
                  <Text size="sm" c="dimmed" w={110} style={{ flexShrink: 0 }}>
                    {column.header}
                  </Text>
                  <div className="breakable" style={{ minWidth: 0, flex: 1 }}>
                    {cell}
                  </div>
                </Group>
              )
            })}
            {actions?.(row)}
          </Stack>
        </Card>
      ))}
    </SimpleGrid>
  )
}
