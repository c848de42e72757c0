import { Group, Input, Skeleton, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useId, useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { convertQuery } from '../../api/jobs'
import { noteText } from '../../api/job-notes'
import { isJson } from '../../forms/submit-job'
import type { CodeNote } from '../../ui/code-editor'

const CodeEditor = lazy(async () => ({ default: (await import('../../ui/code-editor')).CodeEditor }))

interface Props {
  file: string
  /** The file as it was when the typing last paused. */
  settled: string
  onChange: (text: string) => void
}

/** The job as text, with what is wrong with it at its lines. */
export function FileField({ file, settled, onChange }: Props) {
  const { t } = useTranslation('jobs')
  const { t: translate } = useTranslation('notes')
  const help = useId()
  const { data } = useQuery(convertQuery(settled))
  const notes = useMemo(
    () =>
      (data?.notes ?? []).map((note): CodeNote => {
        const { what, hint } = noteText(note, translate)
        return {
          level: note.level === 'error' ? 'error' : 'warning',
          line: note.line ?? undefined,
          column: note.column ?? undefined,
          message: hint ? `${what} ${hint}` : what,
        }
      }),
    [data, translate],
  )
  return (
    <Stack gap={4}>
      <Group>
        <Input.Label labelElement="div">{t('new.file')}</Input.Label>
      </Group>
      <Input.Description id={help}>{t('new.file_help')}</Input.Description>
      <Suspense fallback={<Skeleton className="after-a-moment" height={340} />}>
        <CodeEditor
          label={t('new.file')}
          describedBy={help}
          language={isJson(file) ? 'json' : data?.dialect === 'dlc' ? 'text' : 'yaml'}
          text={file}
          notes={notes}
          onChange={onChange}
        />
      </Suspense>
    </Stack>
  )
}
