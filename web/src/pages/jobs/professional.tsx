import { Fieldset, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { ProfessionalMode } from '../../app/professional'
import { professionalCount } from '../../forms/submit-job'
import { EnvRows } from '../../ui/env-rows'
import { Helped } from '../../ui/helped'
import { MONOSPACE, NumberField, type PartProps, TYPED } from './number-field'

const MOUNT = '/userhome/data:/data'

/** What most jobs do without. */
export function Professional(props: PartProps) {
  const { t } = useTranslation('jobs')
  return (
    <ProfessionalMode help={t('new.professional_help')} set={professionalCount(props.values)}>
      <ProfessionalFields {...props} />
    </ProfessionalMode>
  )
}

function ProfessionalFields(part: PartProps) {
  const { values, errors, set } = part
  const { t } = useTranslation('jobs')
  return (
    <Fieldset legend={t('new.professional')}>
      <Stack>
        <SimpleGrid cols={{ base: 1, xs: 2, sm: 3 }}>
          <NumberField field="retries" words="retries" placeholder="0" whole {...part} />
          <NumberField field="tasks" words="tasks" placeholder="1" whole {...part} />
          <NumberField field="priority" words="priority" placeholder="5" whole {...part} />
          <NumberField field="failAfter" words="fail_after" placeholder="1" whole {...part} />
          <NumberField
            field="succeedAfter"
            words="succeed_after"
            placeholder={t('new.succeed_all')}
            whole
            {...part}
          />
          <Helped label={t('new.description')} help={t('new.description_help')} error={errors.description}>
            {(props) => (
              <TextInput
                {...props}
                value={values.description}
                onChange={(event) => set({ description: event.currentTarget.value })}
              />
            )}
          </Helped>
        </SimpleGrid>
        <Helped label={t('new.mounts')} help={t('new.mounts_help')} error={errors.mounts}>
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
        <Variables {...part} />
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
