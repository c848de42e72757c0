import { Alert, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { Verdict } from '../../app/verdict'
import { ApiError } from '../../api/client'
import { dryRunQuery } from '../../api/jobs'
import { noteText } from '../../api/job-notes'
import type { DryRun, JobNote, SubmitJob } from '../../api/types'
import { IconAlert } from '../../ui/icons'
import { Notes } from './converted'
import type { PlacedNote } from './fields'

/** Not asked of what is being submitted: it would be in its own way. */
export function useVerdict(wanted: SubmitJob, asked: boolean): UseQueryResult<DryRun> {
  return useQuery({ ...dryRunQuery(wanted), enabled: asked, placeholderData: keepPreviousData })
}

/** What would become of the file. */
interface VerdictProps {
  verdict: UseQueryResult<DryRun>
  /** The form shows the mistakes where they are. */
  inForm?: boolean
}

export function JobVerdict({ verdict: { data, error }, inForm }: VerdictProps) {
  const { t } = useTranslation('jobs')
  if (error) return <JobTrouble error={error} inForm={inForm} />
  if (!data) return <Text size="sm">{t('new.verdict_checking')}</Text>
  return <Verdict verdict={data} />
}

function notesOf(error: unknown): JobNote[] {
  return error instanceof ApiError ? (error.problem.notes ?? []) : []
}

/** The same for a form, which has fields and no lines. */
export function usePlacedNotes(error: unknown): PlacedNote[] {
  const { t } = useTranslation('notes')
  return notesOf(error)
    .filter(({ level }) => level === 'error')
    .map((note) => {
      const { what, hint } = noteText(note, t)
      return { pointer: note.pointer, text: hint ? `${what} ${hint}` : what }
    })
}

/** An error about a job file, with every mistake that was found in it. */
export function JobTrouble({ error, inForm = false }: { error: unknown; inForm?: boolean }) {
  const { t } = useTranslation('jobs')
  const notes = notesOf(error)
  if (inForm && notes.length > 0) {
    return <Alert color="red" role="status" icon={<IconAlert />} title={t('new.marked_mistakes')} />
  }
  return (
    <Stack gap="xs">
      <Trouble error={error} />
      <Notes notes={notes} />
    </Stack>
  )
}
