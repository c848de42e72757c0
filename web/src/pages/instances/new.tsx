import { Alert, Button, Grid, Group, Skeleton, Stack } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useLocalStorage } from '@mantine/hooks'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { CodeField } from '../../app/code-field'
import { type FileMode, FileModes } from '../../app/file-modes'
import { PreparingBanner } from '../../app/preparing-banner'
import { Trouble } from '../../app/trouble'
import { Unsaved } from '../../app/unsaved'
import { ApiError } from '../../api/client'
import { createInstance, instanceQuery, instancesQuery, refetchInstances } from '../../api/instances'
import { problemText } from '../../api/problem-text'
import { clustersOf, imagesQuery, isUsable, type Largest, largestOf, nodesQuery } from '../../api/site'
import type { Image, Instance, Node } from '../../api/types'
import {
  createErrors,
  type CreateValues,
  fieldAt,
  requestFrom,
  freshName,
  startingValues,
  valuesLike,
} from '../../forms/create-instance'
import { isJson } from '../../forms/file-text'
import { instanceAs, notesAt, readInstance, writeInstance } from '../../forms/instance-file'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, createCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { focusFirstError } from '../../util/focus-first-error'
import { later } from '../../util/later'
import { paths } from '../../util/path-builder'
import type { CreateForm } from './fields'
import { InstanceVerdict, useInstanceVerdict } from './verdict'

// Who writes it as text does without.
const CreateFields = later(async () => ({ default: (await import('./fields')).CreateFields }))

/** What the form begins with. */
export interface NewInstanceSearch {
  /** An instance that is cloned. */
  from?: string
  image?: string
  /** Instead of what the instance that is cloned asked for. */
  gpus?: number
}

export function NewInstancePage() {
  const { t } = useTranslation('create')
  const { from, image, gpus } = useSearch({ strict: false })
  const images = useQuery(imagesQuery)
  const nodes = useQuery(nodesQuery)
  const source = useQuery({ ...instanceQuery(from ?? ''), enabled: from !== undefined })
  const own = useQuery(instancesQuery)
  const waiting =
    images.isPending || own.isPending || nodes.isPending || (from !== undefined && source.isPending)
  return (
    <Stack>
      <PageTitle>{t('title')}</PageTitle>
      <PreparingBanner of={['base', 'tools', 'lab', 'desktop']} />
      {source.error && <Trouble error={source.error} />}
      {waiting ? (
        <Skeleton className="after-a-moment" height={400} maw={720} />
      ) : (
        // A form that could not learn what the site offers still works: the gateway checks.
        <CreatePart
          images={(images.data ?? []).filter(isUsable)}
          nodes={nodes.data ?? []}
          source={source.data && { ...source.data, gpus: gpus ?? source.data.gpus }}
          image={image}
          taken={(own.data ?? []).map(({ name }) => name)}
        />
      )}
    </Stack>
  )
}

interface FormProps {
  images: Image[]
  nodes: Node[]
  source?: Instance
  image?: string
  /** Names that one has given already. */
  taken: readonly string[]
}

function CreatePart({ images, nodes, source, image, taken }: FormProps) {
  const { t } = useTranslation('create')
  const { t: common } = useTranslation('common')
  const [begin] = useState(() =>
    source
      ? valuesLike(source, clustersOf(nodes)[0])
      : {
          ...startingValues(largestOf(nodes), image ?? images.find((one) => one.default)?.reference ?? ''),
          name: freshName(taken),
        },
  )
  const largestIn = (cluster: string) =>
    largestOf(nodes.filter((node) => cluster === '' || node.cluster === cluster))
  const form: CreateForm = useForm<CreateValues>({
    initialValues: begin,
    validate: (values) => createErrors(values, largestIn(values.cluster), t),
    validateInputOnBlur: ['cpus', 'memoryGib', 'shmGib', 'gpus', 'image', 'command'],
    clearInputErrorOnChange: true,
  })
  const largest = largestIn(form.values.cluster)
  const sound = Object.keys(createErrors({ ...form.values, name: 'x' }, largest, t)).length === 0
  const file = useFile(form, begin, largestOf(nodes))
  const verdict = useInstanceVerdict(requestFrom(form.values), sound && file.sound)
  const create = useCreate(form)
  const reason = file.sound ? verdict.never : t('file.mistakes')
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={form.onSubmit((values) => {
        if (reason === undefined) create.mutate(values)
      }, focusFirstError)}
    >
      <Grid>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Stack>
            {largest === null && <Alert color="yellow">{t('largest_unknown')}</Alert>}
            <FileModes {...file.modes} />
            {file.modes.mode === 'text' ? (
              <InstanceFile file={file} errors={createErrors(form.values, largest, t)} />
            ) : (
              <Suspense fallback={<Skeleton className="after-a-moment" height={400} />}>
                <CreateFields form={form} images={images} largest={largest} />
              </Suspense>
            )}
            {create.error && <Trouble error={create.error} />}
            <Group>
              <SubmitButton label={t('submit')} busy={create.isPending} reason={reason} />
              <Button variant="default" component={Link} to={paths.instances()}>
                {common('cancel')}
              </Button>
            </Group>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack pos="sticky" top={76}>
            <InstanceVerdict verdict={verdict} />
            {file.sound && <AsCommand values={form.values} />}
          </Stack>
        </Grid.Col>
      </Grid>
      <Unsaved when={(form.isDirty() || !file.sound) && !create.isPending && !create.isSuccess} />
    </form>
  )
}

function useCreate(form: CreateForm) {
  const { t: translateProblem } = useTranslation(['errors', 'instances', 'jobs'])
  const navigate = useNavigate()
  const cache = useQueryClient()
  return useMutation({
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
}

/** The form's values as a file, and a file's as the form's: whichever was changed last says what is asked for. */
function useFile(form: CreateForm, begin: CreateValues, largest: Largest | null) {
  const { t } = useTranslation('create')
  const [mode, setMode] = useLocalStorage<FileMode>({
    key: 'berth.instance-mode',
    defaultValue: 'form',
    getInitialValueInEffect: false,
  })
  const [text, setText] = useState(() => writeInstance(requestFrom(begin)))
  // What a file leaves out is as the gateway takes it, and not as another instance has it.
  const [otherwise] = useState(() => ({ ...startingValues(largest, ''), shmGib: 0 }))
  const read = useMemo(() => readInstance(text, otherwise, t), [text, otherwise, t])
  const change = (after: string) => {
    setText(after)
    const { values } = readInstance(after, otherwise, t)
    if (values) form.setValues(values)
    form.clearErrors()
    return values !== null
  }
  const sound = mode === 'form' || read.values !== null
  return {
    text,
    notes: read.notes,
    sound,
    change,
    modes: {
      mode,
      format: isJson(text) ? 'json' : 'yaml',
      onMode: (chosen: FileMode) => {
        if (chosen === 'text') setText(writeInstance(requestFrom(form.values), text))
        setMode(chosen)
      },
      onFormat: (as: 'yaml' | 'json') => setText(instanceAs(text, as) ?? text),
      onFile: (imported: string) => {
        if (!change(imported)) setMode('text')
      },
      noForm: sound ? undefined : t('file.no_form'),
    },
  } as const
}

interface FileProps {
  file: ReturnType<typeof useFile>
  errors: Record<string, string>
}

/** The request as text. What the form would find wrong stands at the lines that say it. */
function InstanceFile({ file: { text, notes, sound, change }, errors }: FileProps) {
  const { t } = useTranslation('create')
  const wrong = JSON.stringify(errors)
  const all = useMemo(() => (sound ? notesAt(JSON.parse(wrong), text) : notes), [sound, wrong, text, notes])
  return (
    <CodeField
      label={t('file.label')}
      help={t('file.help')}
      language={isJson(text) ? 'json' : 'yaml'}
      text={text}
      notes={all}
      onChange={change}
    />
  )
}

function AsCommand({ values }: { values: CreateValues }) {
  const { t } = useTranslation('create')
  const request = requestFrom(values)
  return (
    <Section title={t('cli')}>
      <ShowAs open command={createCommand(request)} request={apiRequest('POST', '/instances', request)} />
    </Section>
  )
}
