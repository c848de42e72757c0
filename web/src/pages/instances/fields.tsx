import {
  Autocomplete,
  Badge,
  Fieldset,
  Group,
  MultiSelect,
  NumberInput,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { GpuModelSelect } from '../../app/gpu-model-select'
import { PlaceSelects } from '../../app/place-select'
import { ProfessionalMode } from '../../app/professional'
import { secretsQuery } from '../../api/secrets'
import type { Largest } from '../../api/site'
import type { Image, UseSecret } from '../../api/types'
import {
  type CreateValues,
  memoryText,
  nameError,
  professionalCount,
  slugOf,
} from '../../forms/create-instance'
import { EnvRows } from '../../ui/env-rows'
import { formatBytes, GIB } from '../../util/format'

export type CreateForm = UseFormReturnType<CreateValues>

interface FieldsProps {
  form: CreateForm
  images: Image[]
  largest: Largest | null
}

/** An instance as a form. */
export function CreateFields({ form, images, largest }: FieldsProps) {
  const { t } = useTranslation('create')
  return (
    <>
      <Basics form={form} images={images} />
      <ResourceFields form={form} largest={largest} />
      <Text size="sm" c="dimmed">
        {t('storage')}
      </Text>
      <Advanced form={form} />
    </>
  )
}

function Basics({ form, images }: { form: CreateForm; images: Image[] }) {
  const { t } = useTranslation('create')
  const { name } = form.values
  // While typing only what can no longer become right is marked; that something is missing is said on leaving.
  const live = name === '' ? null : nameError(name, t)
  const props = form.getInputProps('name')
  const byReference = new Map(images.map((image) => [image.reference, image]))
  return (
    <Fieldset legend={t('basics')}>
      <Stack>
        <TextInput
          label={t('name.label')}
          description={name !== '' && live === null ? t('name.slug', { slug: slugOf(name) }) : t('name.help')}
          withAsterisk
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          {...props}
          error={live ?? props.error}
        />
        <Autocomplete
          label={t('image.label')}
          description={form.values.image.trim() === '' ? t('image.empty') : t('image.help')}
          comboboxProps={{ keepMounted: false }}
          data={[...byReference.keys()]}
          // All of them while one of them stands there: the list is for choosing another.
          filter={({ options, search }) =>
            byReference.has(search)
              ? options
              : options.filter((option) => 'value' in option && option.value.includes(search.trim()))
          }
          renderOption={({ option }) => (
            <ImageOption reference={option.value} image={byReference.get(option.value)} />
          )}
          spellCheck={false}
          autoCapitalize="none"
          {...form.getInputProps('image')}
        />
      </Stack>
    </Fieldset>
  )
}

function ImageOption({ reference, image }: { reference: string; image: Image | undefined }) {
  const { t } = useTranslation('create')
  return (
    <Group justify="space-between" w="100%" gap="xs">
      <Text size="sm" className="breakable" flex={1}>
        {reference}
      </Text>
      {image?.default && (
        <Badge size="sm" variant="light" tt="none">
          {t('image.default')}
        </Badge>
      )}
      {image && (
        <Text size="xs" c="dimmed" className="numbers">
          {formatBytes(image.size_bytes)}
        </Text>
      )}
    </Group>
  )
}

function ResourceFields({ form, largest }: { form: CreateForm; largest: Largest | null }) {
  const { t } = useTranslation('create')
  const mostMemory = largest ? Math.floor((largest.memoryBytes / GIB) * 10) / 10 : undefined
  const gpuHelp =
    largest === null
      ? undefined
      : largest.gpus === 0
        ? t('gpus.none')
        : t('gpus.help', { largest: largest.gpus })
  return (
    <Fieldset legend={t('resources')}>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <NumberInput
          label={t('cpus.label')}
          description={largest ? t('cpus.help', { largest: largest.cpus }) : undefined}
          min={0.1}
          max={largest?.cpus}
          step={1}
          clampBehavior="none"
          {...form.getInputProps('cpus')}
        />
        <NumberInput
          label={t('memory.label')}
          description={largest ? t('memory.help', { largest: memoryText(largest) }) : undefined}
          min={0}
          max={mostMemory}
          step={1}
          clampBehavior="none"
          {...form.getInputProps('memoryGib')}
        />
        <NumberInput
          label={t('shm.label')}
          description={t('shm.help')}
          min={0}
          step={1}
          clampBehavior="none"
          {...form.getInputProps('shmGib')}
        />
        <NumberInput
          label={t('gpus.label')}
          description={gpuHelp}
          min={0}
          max={largest?.gpus}
          allowDecimal={false}
          disabled={largest?.gpus === 0}
          clampBehavior="none"
          {...form.getInputProps('gpus')}
        />
        {Number(form.values.gpus) > 0 && (
          <GpuModelSelect
            label={t('gpu_model.label')}
            description={t('gpu_model.help')}
            value={form.values.gpuModel}
            error={form.errors.gpuModel}
            onChange={(model) => form.setFieldValue('gpuModel', model)}
          />
        )}
        <PlaceSelects
          cluster={form.values.cluster}
          pool={form.values.pool}
          errors={form.errors}
          onChange={(change) => form.setValues(change)}
        />
      </SimpleGrid>
    </Fieldset>
  )
}

function Advanced({ form }: { form: CreateForm }) {
  const { t } = useTranslation('create')
  return (
    <ProfessionalMode help={t('professional_help')} set={professionalCount(form.values)}>
      <Stack>
        <EnvRows
          rows={form.values.env}
          cell={(index, part) => form.getInputProps(`env.${index}.${part}`)}
          onAdd={(row) => form.insertListItem('env', row)}
          onRemove={(index) => form.removeListItem('env', index)}
        />
        <TextInput
          label={t('command.label')}
          description={t('command.help')}
          placeholder="python train.py --epochs 10"
          spellCheck={false}
          autoCapitalize="none"
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          {...form.getInputProps('command')}
        />
        <SecretSelect
          used={form.values.secrets}
          onChange={(secrets) => form.setFieldValue('secrets', secrets)}
        />
        <Switch
          label={t('auto_start.label')}
          description={t('auto_start.help')}
          {...form.getInputProps('autoStart', { type: 'checkbox' })}
        />
      </Stack>
    </ProfessionalMode>
  )
}

/** Which of one's secrets its processes get; how, for those of an instance that it is like, stays as it was. */
function SecretSelect({ used, onChange }: { used: UseSecret[]; onChange: (used: UseSecret[]) => void }) {
  const { t } = useTranslation('create')
  const { data: mine = [] } = useQuery(secretsQuery('me'))
  const names = new Set([
    ...mine.filter((one) => !one.registry).map((one) => one.name),
    ...used.map((one) => one.name),
  ])
  if (names.size === 0) return null
  return (
    <MultiSelect
      label={t('secrets.label')}
      description={t('secrets.help')}
      data={[...names].toSorted()}
      value={used.map((one) => one.name)}
      onChange={(chosen) => onChange(chosen.map((name) => used.find((one) => one.name === name) ?? { name }))}
    />
  )
}
