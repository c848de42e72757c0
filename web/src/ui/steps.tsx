import { Group, SimpleGrid, Stack, Text, ThemeIcon } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { formatDuration } from '../util/format'
import { IconAlert, IconCheck, IconLoader, IconStopped } from './icons'

export interface Step {
  key: string
  label: string
  state: 'done' | 'now' | 'next' | 'failed'
  /** How long it took, or takes so far, where that is known. */
  seconds?: number
  /** What is to be said while it goes on. */
  detail?: ReactNode
}

const LOOK = {
  done: { color: 'green', icon: IconCheck },
  now: { color: 'blue', icon: IconLoader },
  next: { color: 'gray', icon: IconStopped },
  failed: { color: 'red', icon: IconAlert },
} as const

/** Steps that follow each other, each with its own clock. */
export function Steps({ label, steps }: { label: string; steps: readonly Step[] }) {
  return (
    <SimpleGrid
      component="ol"
      aria-label={label}
      cols={{ base: 1, sm: steps.length }}
      spacing="sm"
      style={{ listStyle: 'none', margin: 0, padding: 0 }}
    >
      {steps.map((step) => (
        <OneStep key={step.key} step={step} />
      ))}
    </SimpleGrid>
  )
}

function OneStep({ step }: { step: Step }) {
  const { t, i18n } = useTranslation()
  const { color, icon: Icon } = LOOK[step.state]
  return (
    <Group
      component="li"
      gap="xs"
      wrap="nowrap"
      align="flex-start"
      aria-current={step.state === 'now' ? 'step' : undefined}
    >
      <ThemeIcon variant="light" color={color} radius="xl" size={28}>
        <Icon size={16} className={step.state === 'now' ? 'turning' : undefined} />
      </ThemeIcon>
      <Stack gap={2} miw={0} flex={1}>
        <Text size="sm" fw={600}>
          {step.label}
        </Text>
        <Text size="xs" c="dimmed" className="numbers">
          {step.seconds === undefined
            ? t(`step.${step.state}`)
            : `${t(`step.${step.state}`)} · ${formatDuration(step.seconds, i18n.language)}`}
        </Text>
        {step.detail}
      </Stack>
    </Group>
  )
}
