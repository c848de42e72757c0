import { Table } from '@mantine/core'
import type { ReactNode } from 'react'

export type Fact = readonly [label: string, value: ReactNode]

/** Names and values, one below the other. */
export function Facts({ facts, labels = '34%' }: { facts: readonly Fact[]; labels?: string }) {
  return (
    <Table variant="vertical" withRowBorders={false} verticalSpacing={6} layout="fixed">
      <Table.Tbody>
        {facts.map(([label, value]) => (
          <Table.Tr key={label}>
            <Table.Th scope="row" w={labels} bg="transparent" fw={500} style={{ verticalAlign: 'top' }}>
              {label}
            </Table.Th>
            <Table.Td className="breakable">{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}
