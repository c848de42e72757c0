import { NumberInput } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import type { JobValues } from '../../forms/submit-job'
import { Helped } from '../../ui/helped'

export type SetJob = (change: Partial<JobValues>) => void

/** What is wrong with which field. */
export type FieldErrors = Partial<Record<keyof JobValues, string>>

export interface PartProps {
  values: JobValues
  errors: FieldErrors
  set: SetJob
}

/** Text that programs read, as it is typed. */
export const TYPED = { autoCapitalize: 'none', autoComplete: 'off', spellCheck: false } as const
export const MONOSPACE = { input: { fontFamily: 'var(--mantine-font-family-monospace)' } } as const

interface NumberProps extends PartProps {
  field:
    | 'failAfter'
    | 'succeedAfter'
    | 'limitHours'
    | 'retries'
    | 'priority'
    | 'cpus'
    | 'memoryGib'
    | 'gpus'
    | 'tasks'
    | 'shmGib'
  /** Those of `new.<words>` and `new.<words>_help`. */
  words:
    | 'fail_after'
    | 'succeed_after'
    | 'limit'
    | 'retries'
    | 'priority'
    | 'cpus'
    | 'memory'
    | 'gpus'
    | 'tasks'
    | 'shm'
  /** What is taken where nothing is written. */
  placeholder: string
  whole?: boolean
}

export function NumberField({ values, errors, set, field, words, placeholder, whole }: NumberProps) {
  const { t } = useTranslation('jobs')
  const value = values[field]
  // A word of the file, such as `never`, stands where the number would, until one is typed.
  const word = Number.isNaN(Number(value)) ? String(value) : undefined
  return (
    <Helped label={t(`new.${words}`)} help={t(`new.${words}_help`)} error={errors[field]}>
      {(props) => (
        <NumberInput
          {...props}
          min={0}
          allowDecimal={!whole}
          clampBehavior="none"
          placeholder={word ?? placeholder}
          value={word === undefined ? value : ''}
          onChange={(typed) => set({ [field]: typed })}
        />
      )}
    </Helped>
  )
}
