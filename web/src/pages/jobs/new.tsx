import {
  Alert,
  Box,
  Button,
  FileButton,
  Grid,
  Group,
  SegmentedControl,
  Skeleton,
  Stack,
  Textarea,
} from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { JobTrouble, JobVerdict } from './verdict'
import { Trouble } from '../../app/trouble'
import { jobFileQuery, jobQuery, refetchJobs, submitJob } from '../../api/jobs'
import { imagesQuery } from '../../api/site'
import { cloneName } from '../../forms/create-instance'
import { fileFrom, type JobValues, renamed, startingJob, valuesFrom } from '../../forms/submit-job'
import { IconUpload } from '../../ui/icons'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { ShowAsCommand } from '../../ui/show-as-command'
import { ignoreComposingEnter } from '../../util/composing'
import { paths } from '../../util/path-builder'
import { JobFields } from './fields'

/** While somebody types nothing is asked. */
const PAUSE_MS = 400

export interface NewJobSearch {
  /** A job that is cloned. */
  from?: string
}

export function NewJobPage() {
  const { t } = useTranslation('jobs')
  const { from } = useSearch({ strict: false })
  const images = useQuery(imagesQuery)
  const source = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined })
  const file = useQuery({ ...jobFileQuery(from ?? ''), enabled: from !== undefined })
  const waiting = images.isPending || (from !== undefined && (source.isPending || file.isPending))
  const image = images.data?.find((one) => one.default)?.reference ?? ''
  const begin =
    source.data && file.data !== undefined
      ? renamed(file.data, cloneName(source.data.name))
      : fileFrom(startingJob(image))
  return (
    <Stack>
      <PageTitle>{t('new.title')}</PageTitle>
      {file.error && <Trouble error={file.error} />}
      {waiting ? (
        <Skeleton className="after-a-moment" height={400} maw={720} />
      ) : (
        <SubmitForm begin={begin} />
      )}
    </Stack>
  )
}

/** The file is what is submitted; the form is one way to write it. */
function SubmitForm({ begin }: { begin: string }) {
  const { t } = useTranslation(['jobs', 'common'])
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [file, setFile] = useState(begin)
  const [values, setValues] = useState<JobValues | null>(() => valuesFrom(begin))
  const [mode, setMode] = useState<'form' | 'text'>(values === null ? 'text' : 'form')
  const [settled] = useDebouncedValue(file, PAUSE_MS)
  const submit = useMutation({
    mutationFn: () => submitJob({ file }),
    onSuccess: async (job) => {
      void refetchJobs(cache)
      await navigate({ to: paths.job(job.name) })
    },
  })
  const write = (text: string) => {
    setFile(text)
    setValues(valuesFrom(text))
    submit.reset()
  }
  const fill = (filled: JobValues) => {
    setValues(filled)
    setFile(fileFrom(filled))
    submit.reset()
  }
  return (
    <form
      noValidate
      onKeyDownCapture={ignoreComposingEnter}
      onSubmit={(event) => {
        event.preventDefault()
        submit.mutate()
      }}
    >
      <Grid>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Stack>
            <Group>
              <SegmentedControl<'form' | 'text'>
                aria-label={t('new.mode')}
                data={[
                  { value: 'form', label: t('new.form') },
                  { value: 'text', label: t('new.text') },
                ]}
                value={mode}
                onChange={setMode}
              />
            </Group>
            {mode === 'text' && <FileField file={file} onChange={write} />}
            {mode === 'form' && values && <JobFields values={values} onChange={fill} />}
            {mode === 'form' && values === null && (
              <Alert color="yellow" role="status">
                {t('new.locked')}
              </Alert>
            )}
            {submit.error && <JobTrouble error={submit.error} />}
            <Group>
              <Button type="submit" loading={submit.isPending}>
                {t('new.submit')}
              </Button>
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
                <JobVerdict file={settled} ready={mode === 'text' || values?.name.trim() !== ''} />
              </Section>
              <Section title={t('new.file')}>
                <ShowAsCommand command={`berth submit - <<'EOF'\n${file.trimEnd()}\nEOF`} />
              </Section>
            </Stack>
          </Box>
        </Grid.Col>
      </Grid>
    </form>
  )
}

function FileField({ file, onChange }: { file: string; onChange: (text: string) => void }) {
  const { t } = useTranslation('jobs')
  const read = async (chosen: File | null) => {
    if (chosen) onChange(await chosen.text())
  }
  return (
    <Stack gap="xs">
      <Textarea
        label={t('new.file')}
        description={t('new.file_help')}
        autosize
        minRows={14}
        maxRows={40}
        spellCheck={false}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
        value={file}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <FileButton onChange={(chosen) => void read(chosen)}>
        {(props) => (
          <Group>
            <Button {...props} variant="default" size="xs" leftSection={<IconUpload size={16} />}>
              {t('new.import')}
            </Button>
          </Group>
        )}
      </FileButton>
    </Stack>
  )
}
