import { Center, Group, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

interface Props {
  icon: ReactNode
  title: string
  text: string
  action?: ReactNode
}

/** Nothing here yet: one sentence, one thing to do. */
export function EmptyState({ icon, title, text, action }: Props) {
  return (
    <Center py={64}>
      <Stack align="center" gap="sm" maw={520}>
        {icon}
        <Title order={2} size="h4">
          {title}
        </Title>
        <Text c="dimmed" ta="center" maw={460}>
          {text}
        </Text>
        {action && <Group justify="center">{action}</Group>}
      </Stack>
    </Center>
  )
}
