import { Table, UnstyledButton } from '@mantine/core'
import {
  type Cell,
  type Column,
  type ColumnDef,
  createSortedRowModel,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  sortFn_text,
  type SortingState,
  tableFeatures,
  useTable,
} from '@tanstack/react-table'
import type { ReactNode } from 'react'

import { IconSortAscending, IconSortDescending } from './icons'

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { basic: sortFn_basic, text: sortFn_text, alphanumeric: sortFn_alphanumeric },
})

type Features = typeof features
export type DataColumn<T extends object> = ColumnDef<Features, T>

interface Props<T extends object> {
  label: string
  rows: T[]
  columns: DataColumn<T>[]
  rowId: (row: T) => string
  /** The column that names the row. */
  headingColumn: string
  sorting: SortingState
  onSort: (sorting: SortingState) => void
  sortLabel: (column: string) => string
}

/** A real table with sortable columns. The only place that knows TanStack Table. */
export function DataTable<T extends object>(props: Props<T>) {
  const { sorting } = props
  const table = useTable({
    features,
    columns: props.columns,
    data: props.rows,
    getRowId: props.rowId,
    state: { sorting },
    onSortingChange: (update) => props.onSort(typeof update === 'function' ? update(sorting) : update),
    enableMultiSort: false,
  })
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table aria-label={props.label} verticalSpacing="sm" highlightOnHover>
        <Table.Thead>
          {table.getHeaderGroups().map((group) => (
            <Table.Tr key={group.id}>
              {group.headers.map((header) => (
                <Table.Th
                  key={header.id}
                  scope="col"
                  style={{ whiteSpace: 'nowrap' }}
                  aria-sort={ariaSort(header.column)}
                >
                  {header.column.getCanSort() ? (
                    <SortButton column={header.column} label={props.sortLabel(header.column.id)}>
                      <table.FlexRender header={header} />
                    </SortButton>
                  ) : (
                    <table.FlexRender header={header} />
                  )}
                </Table.Th>
              ))}
            </Table.Tr>
          ))}
        </Table.Thead>
        <Table.Tbody>
          {table.getRowModel().rows.map((row) => (
            <Table.Tr key={row.id}>
              {row.getAllCells().map((cell) =>
                cell.column.id === props.headingColumn ? (
                  <Table.Th key={cell.id} scope="row" fw="inherit" style={{ whiteSpace: 'nowrap' }}>
                    {drawn(cell)}
                  </Table.Th>
                ) : (
                  <Table.Td key={cell.id}>{drawn(cell)}</Table.Td>
                ),
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

/**
 * What a cell shows. Its function is called, and not made a component as TanStack's own way is: columns that are made anew
 * with each drawing would be other components, and a dialog that is open in one of them would be gone.
 */
function drawn<T extends object>(cell: Cell<Features, T, unknown>): ReactNode {
  const { cell: draw } = cell.column.columnDef
  return typeof draw === 'function' ? draw(cell.getContext()) : draw
}

interface SortButtonProps<T extends object> {
  column: Column<Features, T>
  label: string
  children: ReactNode
}

function SortButton<T extends object>({ column, label, children }: SortButtonProps<T>) {
  const sorted = column.getIsSorted()
  return (
    <UnstyledButton fw={700} fz="sm" title={label} onClick={() => column.toggleSorting()}>
      {children}
      {sorted === 'asc' && <IconSortAscending size={14} aria-hidden />}
      {sorted === 'desc' && <IconSortDescending size={14} aria-hidden />}
    </UnstyledButton>
  )
}

function ariaSort<T extends object>(column: Column<Features, T>) {
  switch (column.getIsSorted()) {
    case 'asc':
      return 'ascending'
    case 'desc':
      return 'descending'
    case false:
      return undefined
  }
}
