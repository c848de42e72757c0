import { Box, Button, Grid, Group, SimpleGrid, Skeleton, Stack, TextInput } from '@mantine/core'
import { useDebouncedValue, useLocalStorage } from '@mantine/hooks'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { type FileMode, FileModes } from '../../app/file-modes'
import { PlaceSelects, useClusters } from '../../app/place-select'
import { Trouble } from '../../app/trouble'
import { Unsaved } from '../../app/unsaved'
import { convertQuery, jobFileQuery, jobQuery, refetchJobs, submitJob } from '../../api/jobs'
import { imagesQuery, siteQuery } from '../../api/site'
import { cloneName } from '../../forms/create-instance'
import { isJson } from '../../forms/file-text'
import { readJob, renamed, startingFile, withGpus, written } from '../../forms/submit-job'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { SubmitButton } from '../../ui/submit-button'
import { ShowAs } from '../../ui/show-as'
import { apiRequest, submitCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { focusFirstError } from '../../util/focus-first-error'
import { later } from '../../util/later'
import { paths } from '../../util/path-builder'
import { ConfirmSubmit, costs } from './confirm'
import { ConvertedFile } from './converted'
import { CloneDiff, ConvertedDiff } from './differences'
import { FileField } from './file-field'
import { JobTrouble, JobVerdict, usePlacedNotes, useVerdict } from './verdict'

// Who writes the file as text does without.
const JobFields = later(async () => ({ default: (await import('./fields')).JobFields }))

/** While somebody types nothing is asked. */
const PAUSE_MS = 400

export interface NewJobSearch {
  /** A job that is cloned. */
  from?: string
  image?: string
  /** For each task, instead of what the job that is cloned asked for. */
  gpus?: number
}

export function NewJobPage() {
  const { t } = useTranslation('jobs')
  const { from, image: asked, gpus } = useSearch({ strict: false })
  const images = useQuery(imagesQuery)
  const source = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined })
  const file = useQuery({ ...jobFileQuery(from ?? ''), enabled: from !== undefined })
  // A file of another language says it in its own way: what asks for less begins with what the file means here.
  const foreign = gpus !== undefined && file.data !== undefined && readJob(file.data) === null
  const meant = useQuery({ ...convertQuery(file.data ?? ''), enabled: foreign })
  const reading = source.isPending || file.isPending || (foreign && meant.isPending)
  const waiting = images.isPending || (from !== undefined && reading)
  const image = asked ?? images.data?.find((one) => one.default)?.reference ?? ''
  const name = source.data ? cloneName(source.data.name) : ''
  return (
    <Stack>
      <PageTitle>{t('new.title')}</PageTitle>
      {file.error && <Trouble error={file.error} />}
      {waiting ? (
        <Skeleton className="after-a-moment" height={400} maw={720} />
      ) : (
        <SubmitForm
          begin={
            file.data === undefined
              ? startingFile(image)
              : withGpus(renamed((foreign && meant.data?.file) || file.data, name), gpus)
          }
          name={name}
          source={file.data === undefined ? undefined : { file: file.data, name: source.data?.name ?? '' }}
          cluster={source.data?.cluster}
        />
      )}
    </Stack>
  )
}

interface FormProps {
  begin: string
  name: string
  /** The job that is cloned. */
  source?: { file: string; name: string }
  /** Where that one is. */
  cluster?: string
}

/** The file is what is submitted; the form is one way to write it. */
function SubmitForm({ begin, name: named, source, cluster: there = '' }: FormProps) {
  const { t } = useTranslation(['jobs', 'common'])
  const [file, setFile] = useState(begin)
  const [name, setName] = useState(named)
  const [first] = useClusters()
  const [place, setPlace] = useState({ cluster: there, pool: '' })
  const cluster = place.cluster === first ? '' : place.cluster
  const [mode, setMode] = useLocalStorage<FileMode>({
    key: 'berth.job-mode',
    defaultValue: 'form',
    getInitialValueInEffect: false,
  })
  const { data: site } = useQuery(siteQuery)
  const [confirming, setConfirming] = useState(false)
  // How often the file was replaced as a whole: the form then begins anew.
  const [replaced, setReplaced] = useState(0)
  const cache = useQueryClient()
  const [settled] = useDebouncedValue(file, PAUSE_MS)
  const own = readJob(file) !== null
  const { data: converted } = useQuery({ ...convertQuery(settled), enabled: !own })
  const meaning = own ? file : (converted?.file ?? file)
  const shown: FileMode = own ? mode : 'text'
  // A file of another language keeps the name and the pool that stand in it, unless it gets others here.
  const wanted = {
    file,
    ...(!own && name.trim() !== '' && { name: name.trim() }),
    ...(!own && place.pool !== '' && { pool: place.pool }),
    ...(cluster !== '' && { cluster }),
  }
  const submit = useSubmit(wanted)
  const change = (text: string) => {
    setFile(text)
    submit.reset()
  }
  const replace = (text: string) => {
    change(text)
    setReplaced(replaced + 1)
  }
  const choose = (chosen: FileMode) => setMode(chosen)
  const verdict = useVerdict({ ...wanted, file: settled }, !submit.isPending && !submit.isSuccess)
  const notes = usePlacedNotes(submit.error ?? verdict.error)
  const never = settled === file && verdict.data?.outcome === 'never'
  const ask = async () => {
    if (never) return
    // What a file of another language costs is known only once it has been read.
    const meant = own
      ? file
      : await cache.fetchQuery(convertQuery(file)).then(
          (read) => read.file ?? file,
          () => file,
        )
    if (site?.confirm_always || costs(meant)) setConfirming(true)
    else submit.mutate()
  }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={(event) => {
        event.preventDefault()
        void ask()
      }}
    >
      <Grid>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Stack>
            <FileModes
              mode={shown}
              onMode={choose}
              format={isJson(file) ? 'json' : 'yaml'}
              onFormat={(as) => {
                const text = written(file, as)
                if (text !== null) replace(text)
              }}
              onFile={replace}
              noForm={own ? undefined : t('new.no_form')}
            />
            {shown === 'text' && (
              <SimpleGrid cols={{ base: 1, xs: 2 }} className="gone-when-empty">
                <PlaceSelects
                  cluster={cluster}
                  pool={own ? undefined : place.pool}
                  onChange={(chosen) => setPlace({ ...place, ...chosen })}
                />
              </SimpleGrid>
            )}
            {!own && (
              <TextInput
                label={t('new.other_name')}
                description={t('new.other_name_help')}
                autoCapitalize="none"
                spellCheck={false}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
              />
            )}
            {shown === 'text' ? (
              <FileField file={file} settled={settled} onChange={change} />
            ) : (
              <Suspense fallback={<Skeleton className="after-a-moment" height={400} />}>
                <JobFields
                  key={replaced}
                  file={file}
                  notes={notes}
                  onChange={change}
                  cluster={cluster}
                  onCluster={(chosen) => setPlace({ ...place, cluster: chosen })}
                />
              </Suspense>
            )}
            {!own && <ConvertedDiff file={settled} />}
            {own && source && <CloneDiff source={source.file} name={source.name} file={settled} />}
            {submit.error && <JobTrouble error={submit.error} inForm={shown === 'form'} />}
            <Group>
              <SubmitButton
                label={t('new.submit')}
                busy={submit.isPending}
                reason={never ? t('new.verdict_never') : undefined}
              />
              <Button variant="default" component={Link} to={paths.jobs()}>
                {t('common:cancel')}
              </Button>
            </Group>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Box pos="sticky" top={76}>
            <Stack>
              <Section title={t('new.verdict')}>
                <JobVerdict verdict={verdict} inForm={shown === 'form'} />
              </Section>
              {!own && (
                <ConvertedFile
                  file={settled}
                  onUse={(text) => {
                    replace(name.trim() === '' ? text : renamed(text, name.trim()))
                    choose('form')
                  }}
                />
              )}
              <Section title={t('new.as_command')}>
                <ShowAs open command={submitCommand(wanted)} request={apiRequest('POST', '/jobs', wanted)} />
              </Section>
            </Stack>
          </Box>
        </Grid.Col>
      </Grid>
      <Unsaved when={(file !== begin || name !== named) && !submit.isPending && !submit.isSuccess} />
      <ConfirmSubmit
        file={meaning}
        name={wanted.name}
        opened={confirming}
        busy={submit.isPending}
        onConfirm={() => submit.mutate(undefined, { onSettled: () => setConfirming(false) })}
        onClose={() => setConfirming(false)}
      />
    </form>
  )
}

function useSubmit(wanted: Parameters<typeof submitJob>[0]) {
  const navigate = useNavigate()
  const cache = useQueryClient()
  return useMutation({
    mutationFn: () => submitJob(wanted),
    onError: focusFirstError,
    onSuccess: async (job) => {
      void refetchJobs(cache)
      await navigate({ to: paths.job(job) })
    },
  })
}
