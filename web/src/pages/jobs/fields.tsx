import {
  Autocomplete,
  Fieldset,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { GpuModelSelect } from '../../app/gpu-model-select'
import { PlaceSelects } from '../../app/place-select'
import { imagesQuery } from '../../api/site'
import { readJob, roleNames, writeJob } from '../../forms/submit-job'
import { Helped } from '../../ui/helped'
import { MONOSPACE, NumberField, type PartProps, type SetJob, TYPED } from './number-field'
import { Professional } from './professional'

interface Props {
  file: string
  onChange: (file: string) => void
  /** Where it is to run, which stands in no file. */
  cluster: string
  onCluster: (cluster: string) => void
}

/** The job as a form. The gateway judges it; here is only written down what it is to be. */
export function JobFields({ file, onChange, cluster, onCluster }: Props) {
  const { t } = useTranslation('jobs')
  const [values, setValues] = useState(() => readJob(file))
  const roles = roleNames(file)
  if (values === null) return null
  const set: SetJob = (change) => {
    const after = { ...values, ...change }
    setValues(after)
    onChange(writeJob(file, values, after))
  }
  return (
    <Stack>
      <Basics values={values} set={set}>
        <PlaceSelects
          cluster={cluster}
          pool={values.pool}
          onChange={({ cluster: chosen, pool }) => {
            if (chosen !== undefined) onCluster(chosen)
            if (pool !== undefined) set({ pool })
          }}
        />
      </Basics>
      {roles.length > 1 && (
        <SegmentedControl
          aria-label={t('new.role')}
          data={roles.map((label, index) => ({ value: String(index), label }))}
          value={String(values.role)}
          onChange={(role) => setValues(readJob(file, Number(role)))}
        />
      )}
      <TaskFields key={values.role} values={values} set={set} />
      <Professional values={values} set={set} />
    </Stack>
  )
}

function Basics({ values, set, children }: PartProps & { children: ReactNode }) {
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
        {children}
      </SimpleGrid>
      <Switch
        mt="md"
        label={t('new.keep')}
        description={t('new.keep_help')}
        checked={values.keepOnFailure}
        onChange={(event) => set({ keepOnFailure: event.currentTarget.checked })}
      />
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
        <SimpleGrid cols={{ base: 1, xs: 2, sm: 3 }} className="level-fields">
          <NumberField field="cpus" words="cpus" placeholder="1" {...{ values, set }} />
          <NumberField field="memoryGib" words="memory" placeholder="2" {...{ values, set }} />
          <NumberField field="gpus" words="gpus" placeholder="0" whole {...{ values, set }} />
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
