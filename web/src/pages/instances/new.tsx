import {
  Alert,
  Autocomplete,
  Badge,
  Button,
  Fieldset,
  Grid,
  Group,
  NumberInput,
  SimpleGrid,
  Skeleton,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import { useForm, type UseFormReturnType } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { GpuModelSelect } from '../../app/gpu-model-select'
import { Trouble } from '../../app/trouble'
import { ApiError } from '../../api/client'
import { createInstance, instanceQuery, refetchInstances } from '../../api/instances'
import { problemText } from '../../api/problem-text'
import { imagesQuery, type Largest, largestOf, nodesQuery } from '../../api/site'
import type { Image, Instance } from '../../api/types'
import {
  createErrors,
  type CreateValues,
  fieldAt,
  memoryText,
  nameError,
  requestFrom,
  slugOf,
  startingValues,
  valuesLike,
} from '../../forms/create-instance'
import { CopyField } from '../../ui/copy'
import { EnvRows } from '../../ui/env-rows'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { SubmitButton } from '../../ui/submit-button'
import { createCommand, createRequest } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { formatBytes, GIB } from '../../util/format'
import { originForPrograms } from '../../util/own-address'
import { paths } from '../../util/path-builder'
import { InstanceVerdict, useInstanceVerdict } from './verdict'

type Form = UseFormReturnType<CreateValues>

/** What the form begins with. */
export interface NewInstanceSearch {
  /** An instance that is cloned. */
  from?: string
  image?: string
}

export function NewInstancePage() {
  const { t } = useTranslation('create')
  const { from, image } = useSearch({ strict: false })
  const images = useQuery(imagesQuery)
  const nodes = useQuery(nodesQuery)
  const source = useQuery({ ...instanceQuery(from ?? ''), enabled: from !== undefined })
  const waiting = images.isPending || nodes.isPending || (from !== undefined && source.isPending)
  return (
    <Stack>
      <PageTitle>{t('title')}</PageTitle>
      {source.error && <Trouble error={source.error} />}
      {waiting ? (
        <Skeleton className="after-a-moment" height={400} maw={720} />
      ) : (
        // A form that could not learn what the site offers still works: the gateway checks.
        <CreateForm
          images={(images.data ?? []).filter(isUsable)}
          largest={largestOf(nodes.data ?? [])}
          source={source.data}
          image={image}
        />
      )}
    </Stack>
  )
}

interface FormProps {
  images: Image[]
  largest: Largest | null
  source?: Instance
  image?: string
}

/** One that is still being saved, or was not, cannot be started from. */
function isUsable({ saved }: Image): boolean {
  return !saved || saved.state.state === 'ready'
}

function CreateForm({ images, largest, source, image }: FormProps) {
  const { t } = useTranslation('create')
  const { t: common } = useTranslation('common')
  const { t: translateProblem } = useTranslation(['errors', 'instances'])
  const navigate = useNavigate()
  const cache = useQueryClient()
  const form: Form = useForm<CreateValues>({
    initialValues: source
      ? valuesLike(source)
      : startingValues(largest, image ?? images.find((one) => one.default)?.reference ?? ''),
    validate: (values) => createErrors(values, largest, t),
    validateInputOnBlur: ['cpus', 'memoryGib', 'shmGib', 'gpus', 'image', 'command'],
    clearInputErrorOnChange: true,
  })
  const sound = Object.keys(createErrors({ ...form.values, name: 'x' }, largest, t)).length === 0
  const verdict = useInstanceVerdict(requestFrom(form.values), sound)
  const create = useMutation({
    mutationFn: (values: CreateValues) => createInstance(requestFrom(values)),
    onSuccess: async (instance) => {
      void refetchInstances(cache)
      await navigate({ to: paths.instance(instance) })
    },
    onError: (error) => {
      const field = error instanceof ApiError ? fieldAt(error.problem.pointer) : null
      if (field === null) return
      form.setFieldError(field, problemText(error, translateProblem).what)
      focusFirstError()
    },
  })
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => {
        if (verdict.never === undefined) create.mutate(values)
      }, focusFirstError)}
    >
      <Grid>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Stack>
            {largest === null && <Alert color="yellow">{t('largest_unknown')}</Alert>}
            <Basics form={form} images={images} />
            <ResourceFields form={form} largest={largest} />
            <Advanced form={form} />
            {create.error && <Trouble error={create.error} />}
            <Group>
              <SubmitButton label={t('submit')} busy={create.isPending} reason={verdict.never} />
              <Button variant="default" component={Link} to={paths.instances()}>
                {common('cancel')}
              </Button>
            </Group>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack pos="sticky" top={76}>
            <InstanceVerdict verdict={verdict} />
            <AsCommand values={form.values} />
          </Stack>
        </Grid.Col>
      </Grid>
    </form>
  )
}

function focusFirstError() {
  // After the errors are drawn; the first in the page, not the first found.
  requestAnimationFrame(() => document.querySelector<HTMLElement>('form [aria-invalid="true"]')?.focus())
}

function Basics({ form, images }: { form: Form; images: Image[] }) {
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

function ResourceFields({ form, largest }: { form: Form; largest: Largest | null }) {
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
      </SimpleGrid>
    </Fieldset>
  )
}

function Advanced({ form }: { form: Form }) {
  const { t } = useTranslation('create')
  return (
    <Fieldset legend={t('advanced')}>
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
        <Switch
          label={t('auto_start.label')}
          description={t('auto_start.help')}
          {...form.getInputProps('autoStart', { type: 'checkbox' })}
        />
      </Stack>
    </Fieldset>
  )
}

function AsCommand({ values }: { values: CreateValues }) {
  const { t } = useTranslation('create')
  const request = requestFrom(values)
  return (
    <Section title={t('cli')}>
      <Text size="sm" c="dimmed">
        {t('cli_help')}
      </Text>
      <CopyField block text={createCommand(request)} label={t('copy_cli')} />
      <Text size="sm" c="dimmed">
        {t('api_help')}
      </Text>
      <CopyField
        block
        text={createRequest(originForPrograms(window.location), request)}
        label={t('copy_api')}
      />
    </Section>
  )
}
