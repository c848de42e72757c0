import { Card, Group, Stack, Title } from '@mantine/core'
import type { ReactNode } from 'react'

interface Props {
  title: string
  /** Stands at the right of the title. */
  aside?: ReactNode
  children: ReactNode
}

/** A part of a page with a heading of its own. */
export function Section({ title, aside, children }: Props) {
  return (
    <Card withBorder component="section" padding="md">
      <Stack gap="sm">
        <Group justify="space-between" gap="xs">
          <Title order={2} size="h5">
            {title}
          </Title>
          {aside}
        </Group>
        {children}
      </Stack>
    </Card>
  )
}
