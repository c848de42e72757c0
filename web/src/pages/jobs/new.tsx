import {
  Box,
  Button,
  FileButton,
  Grid,
  Group,
  SegmentedControl,
  Skeleton,
  Stack,
  TextInput,
} from '@mantine/core'
import { useDebouncedValue, useLocalStorage } from '@mantine/hooks'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { convertQuery, jobFileQuery, jobQuery, refetchJobs, submitJob } from '../../api/jobs'
import { imagesQuery, siteQuery } from '../../api/site'
import { cloneName } from '../../forms/create-instance'
import { isJson, readJob, renamed, startingFile, written } from '../../forms/submit-job'
import { IconUpload } from '../../ui/icons'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { SubmitButton } from '../../ui/submit-button'
import { ShowAsCommand } from '../../ui/show-as-command'
import { submitCommand } from '../../util/cli-command'
import { ignoreComposingEnter } from '../../util/composing'
import { paths } from '../../util/path-builder'
import { ConfirmSubmit, costs } from './confirm'
import { ConvertedFile } from './converted'
import { JobFields } from './fields'
import { FileField } from './file-field'
import { JobTrouble, JobVerdict, useVerdict } from './verdict'

/** While somebody types nothing is asked. */
const PAUSE_MS = 400

export interface NewJobSearch {
  /** A job that is cloned. */
  from?: string
  image?: string
}

export function NewJobPage() {
  const { t } = useTranslation('jobs')
  const { from, image: asked } = useSearch({ strict: false })
  const images = useQuery(imagesQuery)
  const source = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined })
  const file = useQuery({ ...jobFileQuery(from ?? ''), enabled: from !== undefined })
  const waiting = images.isPending || (from !== undefined && (source.isPending || file.isPending))
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
          begin={file.data === undefined ? startingFile(image) : renamed(file.data, name)}
          name={name}
        />
      )}
    </Stack>
  )
}

type Mode = 'form' | 'text'

/** The file is what is submitted; the form is one way to write it. */
function SubmitForm({ begin, name: named }: { begin: string; name: string }) {
  const { t } = useTranslation(['jobs', 'common'])
  const [file, setFile] = useState(begin)
  const [name, setName] = useState(named)
  const [mode, setMode] = useLocalStorage<Mode>({
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
  const shown: Mode = own ? mode : 'text'
  // A file of another language keeps the name that stands in it, unless it gets one here.
  const wanted = { file, ...(!own && name.trim() !== '' && { name: name.trim() }) }
  const submit = useSubmit(wanted)
  const change = (text: string) => {
    setFile(text)
    submit.reset()
  }
  const replace = (text: string) => {
    change(text)
    setReplaced(replaced + 1)
  }
  const choose = (chosen: Mode) => setMode(chosen)
  const verdict = useVerdict({ ...wanted, file: settled })
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
            <Modes file={file} mode={shown} own={own} onMode={choose} onFile={replace} />
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
              <JobFields key={replaced} file={file} onChange={change} />
            )}
            {submit.error && <JobTrouble error={submit.error} />}
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
                <JobVerdict verdict={verdict} />
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
                <ShowAsCommand command={submitCommand(file, wanted.name)} />
              </Section>
            </Stack>
          </Box>
        </Grid.Col>
      </Grid>
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
    onSuccess: async (job) => {
      void refetchJobs(cache)
      await navigate({ to: paths.job(job) })
    },
  })
}

interface ModesProps {
  file: string
  mode: Mode
  own: boolean
  onMode: (mode: Mode) => void
  onFile: (file: string) => void
}

/** Form or text, YAML or JSON, or a file that is there already. */
function Modes({ file, mode, own, onMode, onFile }: ModesProps) {
  const { t } = useTranslation('jobs')
  const read = async (chosen: File | null) => {
    if (chosen) onFile(await chosen.text())
  }
  return (
    <Group justify="space-between">
      <Group>
        {own && (
          <SegmentedControl<Mode>
            aria-label={t('new.mode')}
            data={[
              { value: 'form', label: t('new.form') },
              { value: 'text', label: t('new.text') },
            ]}
            value={mode}
            onChange={onMode}
          />
        )}
        {mode === 'text' && own && (
          <SegmentedControl<'yaml' | 'json'>
            aria-label={t('new.format')}
            data={[
              { value: 'yaml', label: 'YAML' },
              { value: 'json', label: 'JSON' },
            ]}
            value={isJson(file) ? 'json' : 'yaml'}
            onChange={(as) => {
              const text = written(file, as)
              if (text !== null) onFile(text)
            }}
          />
        )}
      </Group>
      <FileButton onChange={(chosen) => void read(chosen)}>
        {(props) => (
          <Button {...props} variant="default" leftSection={<IconUpload size={18} />}>
            {t('new.import')}
          </Button>
        )}
      </FileButton>
    </Group>
  )
}
