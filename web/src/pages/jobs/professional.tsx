import { Fieldset, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { ProfessionalMode } from '../../app/professional'
import { professionalCount } from '../../forms/submit-job'
import { EnvRows } from '../../ui/env-rows'
import { Helped } from '../../ui/helped'
import { MONOSPACE, NumberField, type PartProps, TYPED } from './number-field'

const MOUNT = '/userhome/data:/data'

/** What most jobs do without. */
export function Professional({ values, set }: PartProps) {
  const { t } = useTranslation('jobs')
  return (
    <ProfessionalMode help={t('new.professional_help')} set={professionalCount(values)}>
      <ProfessionalFields values={values} set={set} />
    </ProfessionalMode>
  )
}

function ProfessionalFields({ values, set }: PartProps) {
  const { t } = useTranslation('jobs')
  return (
    <Fieldset legend={t('new.professional')}>
      <Stack>
        <SimpleGrid cols={{ base: 1, xs: 2, sm: 3 }}>
          <NumberField field="retries" words="retries" placeholder="0" whole {...{ values, set }} />
          <NumberField field="tasks" words="tasks" placeholder="1" whole {...{ values, set }} />
          <NumberField field="priority" words="priority" placeholder="5" whole {...{ values, set }} />
          <Helped label={t('new.description')} help={t('new.description_help')}>
            {(props) => (
              <TextInput
                {...props}
                value={values.description}
                onChange={(event) => set({ description: event.currentTarget.value })}
              />
            )}
          </Helped>
        </SimpleGrid>
        <Helped label={t('new.mounts')} help={t('new.mounts_help')}>
          {(props) => (
            <Textarea
              {...props}
              {...TYPED}
              autosize
              minRows={1}
              styles={MONOSPACE}
              placeholder={MOUNT}
              value={values.mounts}
              onChange={(event) => set({ mounts: event.currentTarget.value })}
            />
          )}
        </Helped>
        <Variables values={values} set={set} />
      </Stack>
    </Fieldset>
  )
}

function Variables({ values: { env }, set }: PartProps) {
  return (
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
  )
}
