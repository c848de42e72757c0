import { Select } from '@mantine/core'
import type { ReactNode } from 'react'

import type { InputProps } from '../ui/helped'

interface ChoiceProps extends Partial<InputProps> {
  names: readonly string[]
  /** What is taken where nothing is chosen. */
  otherwise: string
  /** Empty for that. */
  value: string
  error?: ReactNode
  onChange: (name: string) => void
}

/** One of those that there are. What was written elsewhere stays a choice. */
export function Choice({ names, otherwise, value, onChange, ...rest }: ChoiceProps) {
  const known = value === '' || names.includes(value)
  return (
    <Select
      {...rest}
      placeholder={otherwise}
      clearable
      clearButtonProps={{ 'aria-label': otherwise }}
      comboboxProps={{ keepMounted: false }}
      data={known ? names : [...names, value]}
      value={value === '' ? null : value}
      onChange={(chosen) => onChange(chosen ?? '')}
    />
  )
}
