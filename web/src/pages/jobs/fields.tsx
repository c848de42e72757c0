import {
  Autocomplete,
  Fieldset,
  NumberInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { GpuModelSelect } from '../../app/gpu-model-select'
import { imagesQuery } from '../../api/site'
import { type JobValues, readJob, roleNames, writeJob } from '../../forms/submit-job'
import { EnvRows } from '../../ui/env-rows'
import { Helped } from '../../ui/helped'

interface Props {
  file: string
  onChange: (file: string) => void
}

type Set = (change: Partial<JobValues>) => void

interface PartProps {
  values: JobValues
  set: Set
}

/** The job as a form. The gateway judges it; here is only written down what it is to be. */
export function JobFields({ file, onChange }: Props) {
  const { t } = useTranslation('jobs')
  const [values, setValues] = useState(() => readJob(file))
  const roles = roleNames(file)
  if (values === null) return null
  const set: Set = (change) => {
    const after = { ...values, ...change }
    setValues(after)
    onChange(writeJob(file, values, after))
  }
  return (
    <Stack>
      <Basics values={values} set={set} />
      {roles.length > 1 && (
        <SegmentedControl
          aria-label={t('new.role')}
          data={roles.map((label, index) => ({ value: String(index), label }))}
          value={String(values.role)}
          onChange={(role) => setValues(readJob(file, Number(role)))}
        />
      )}
      <TaskFields key={values.role} values={values} set={set} />
      <More values={values} set={set} />
    </Stack>
  )
}

/** Text that programs read, as it is typed. */
const TYPED = { autoCapitalize: 'none', autoComplete: 'off', spellCheck: false } as const
const MONOSPACE = { input: { fontFamily: 'var(--mantine-font-family-monospace)' } } as const

function Basics({ values, set }: PartProps) {
  const { t } = useTranslation('jobs')
  return (
    <Fieldset legend={t('new.basics')}>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Helped label={t('new.name')} help={t('new.name_help')}>
          {(props) => (
            <TextInput
              {...props}
              {...TYPED}
              placeholder={t('new.name_made')}
              value={values.name}
              onChange={(event) => set({ name: event.currentTarget.value })}
            />
          )}
        </Helped>
        <Helped label={t('new.gpu_model')} help={t('new.gpu_model_help')}>
          {(props) => (
            <GpuModelSelect {...props} value={values.gpuModel} onChange={(gpuModel) => set({ gpuModel })} />
          )}
        </Helped>
        <NumberField
          field="limitHours"
          words="limit"
          placeholder={t('new.limit_none')}
          {...{ values, set }}
        />
        <NumberField field="retries" words="retries" placeholder="0" whole {...{ values, set }} />
      </SimpleGrid>
    </Fieldset>
  )
}

function TaskFields({ values, set }: PartProps) {
  const { t } = useTranslation('jobs')
  const { data: images = [] } = useQuery(imagesQuery)
  return (
    <Fieldset legend={t('new.resources')}>
      <Stack>
        <Helped label={t('new.image')} help={t('new.image_help')} required>
          {(props) => (
            <Autocomplete
              {...props}
              {...TYPED}
              comboboxProps={{ keepMounted: false }}
              data={[...new Set(images.map((image) => image.reference))]}
              value={values.image}
              onChange={(image) => set({ image })}
            />
          )}
        </Helped>
        <Helped label={t('new.command')} help={t('new.command_help')} required>
          {(props) => (
            <Textarea
              {...props}
              {...TYPED}
              autosize
              minRows={3}
              maxRows={20}
              styles={MONOSPACE}
              value={values.command}
              onChange={(event) => set({ command: event.currentTarget.value })}
            />
          )}
        </Helped>
        <SimpleGrid cols={{ base: 1, xs: 2, sm: 3 }}>
          <NumberField field="cpus" words="cpus" placeholder="1" {...{ values, set }} />
          <NumberField field="memoryGib" words="memory" placeholder="2" {...{ values, set }} />
          <NumberField field="gpus" words="gpus" placeholder="0" whole {...{ values, set }} />
          <NumberField field="tasks" words="tasks" placeholder="1" whole {...{ values, set }} />
          <NumberField field="shmGib" words="shm" placeholder={t('new.shm_own')} {...{ values, set }} />
          <Helped label={t('new.ports')} help={t('new.ports_help')}>
            {(props) => (
              <TextInput
                {...props}
                {...TYPED}
                placeholder="http, tensorboard"
                value={values.ports}
                onChange={(event) => set({ ports: event.currentTarget.value })}
              />
            )}
          </Helped>
        </SimpleGrid>
      </Stack>
    </Fieldset>
  )
}

function More({ values, set }: PartProps) {
  const { t } = useTranslation('jobs')
  const { env } = values
  return (
    <Fieldset legend={t('new.more')}>
      <EnvRows
        rows={env}
        cell={(index, part) => ({
          value: env[index]?.[part] ?? '',
          onChange: (event) => {
            const text = event.currentTarget.value
            set({ env: env.map((row, at) => (at === index ? { ...row, [part]: text } : row)) })
          },
        })}
        onAdd={(row) => set({ env: [...env, row] })}
        onRemove={(index) => set({ env: env.toSpliced(index, 1) })}
      />
    </Fieldset>
  )
}

interface NumberProps extends PartProps {
  field: 'limitHours' | 'retries' | 'cpus' | 'memoryGib' | 'gpus' | 'tasks' | 'shmGib'
  /** Those of `new.<words>` and `new.<words>_help`. */
  words: 'limit' | 'retries' | 'cpus' | 'memory' | 'gpus' | 'tasks' | 'shm'
  /** What is taken where nothing is written. */
  placeholder: string
  whole?: boolean
}

function NumberField({ values, set, field, words, placeholder, whole }: NumberProps) {
  const { t } = useTranslation('jobs')
  return (
    <Helped label={t(`new.${words}`)} help={t(`new.${words}_help`)}>
      {(props) => (
        <NumberInput
          {...props}
          min={0}
          allowDecimal={!whole}
          clampBehavior="none"
          placeholder={placeholder}
          value={values[field]}
          onChange={(value) => set({ [field]: value })}
        />
      )}
    </Helped>
  )
}
