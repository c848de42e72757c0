import { ActionIcon, Group, Input, Stack, Tooltip } from '@mantine/core'
import { type ReactNode, useId } from 'react'

import { IconHelp } from './icons'

/** What an input needs to belong to its label. */
export interface InputProps {
  id: string
  required?: boolean
  error?: ReactNode
}

interface Props {
  label: string
  /** Shown on the mark beside the label, by mouse, finger and keyboard. */
  help: string
  required?: boolean
  /** What is wrong with what is there. */
  error?: ReactNode
  children: (props: InputProps) => ReactNode
}

/** An input whose help is one look away and takes no room. */
export function Helped({ label, help, required, error, children }: Props) {
  const id = useId()
  return (
    <Stack gap={2}>
      <Group gap={2} wrap="nowrap">
        <Input.Label htmlFor={id} required={required}>
          {label}
        </Input.Label>
        <Tooltip label={help} multiline maw={320}>
          <ActionIcon variant="subtle" color="gray" size={24} aria-label={help}>
            <IconHelp size={16} />
          </ActionIcon>
        </Tooltip>
      </Group>
      {children({ id, required, error })}
    </Stack>
  )
}
