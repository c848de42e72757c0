import { Autocomplete, Fieldset, NumberInput, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { imagesQuery } from '../../api/site'
import type { JobValues } from '../../forms/submit-job'

interface Props {
  values: JobValues
  onChange: (values: JobValues) => void
}

/** The job as a form. The gateway judges it; here is only written down what it is to be. */
export function JobFields({ values, onChange }: Props) {
  const { t } = useTranslation('jobs')
  const { data: images = [] } = useQuery(imagesQuery)
  const set = (change: Partial<JobValues>) => onChange({ ...values, ...change })
  const number = (field: 'cpus' | 'memoryGib' | 'gpus' | 'tasks' | 'limitHours' | 'retries') => ({
    value: values[field],
    onChange: (value: number | string) => set({ [field]: value }),
    error: typeof values[field] === 'number' ? undefined : t('new.number'),
    clampBehavior: 'none' as const,
  })
  return (
    <Stack>
      <Fieldset legend={t('new.basics')}>
        <Stack>
          <TextInput
            label={t('new.name')}
            description={t('new.name_help')}
            withAsterisk
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            value={values.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          <Autocomplete
            label={t('new.image')}
            description={t('new.image_help')}
            withAsterisk
            comboboxProps={{ keepMounted: false }}
            data={[...new Set(images.map((image) => image.reference))]}
            spellCheck={false}
            autoCapitalize="none"
            value={values.image}
            onChange={(image) => set({ image })}
          />
          <Textarea
            label={t('new.command')}
            description={t('new.command_help')}
            withAsterisk
            autosize
            minRows={3}
            spellCheck={false}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
            value={values.command}
            onChange={(event) => set({ command: event.currentTarget.value })}
          />
        </Stack>
      </Fieldset>
      <Fieldset legend={t('new.resources')}>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <NumberInput label={t('new.cpus')} min={0.01} {...number('cpus')} />
          <NumberInput label={t('new.memory')} min={0} {...number('memoryGib')} />
          <NumberInput
            label={t('new.gpus')}
            description={t('new.gpus_help')}
            min={0}
            allowDecimal={false}
            {...number('gpus')}
          />
          <NumberInput
            label={t('new.tasks')}
            description={t('new.tasks_help')}
            min={1}
            allowDecimal={false}
            {...number('tasks')}
          />
          <NumberInput
            label={t('new.limit')}
            description={t('new.limit_help')}
            min={0}
            {...number('limitHours')}
          />
          <NumberInput label={t('new.retries')} min={0} allowDecimal={false} {...number('retries')} />
        </SimpleGrid>
      </Fieldset>
    </Stack>
  )
}
