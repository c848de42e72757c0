import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { CodeField } from '../../app/code-field'
import { convertQuery } from '../../api/jobs'
import { noteText } from '../../api/job-notes'
import { isJson } from '../../forms/file-text'
import type { CodeNote } from '../../ui/code-editor'

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
    <CodeField
      label={t('new.file')}
      help={t('new.file_help')}
      language={isJson(file) ? 'json' : data?.dialect === 'dlc' ? 'text' : 'yaml'}
      text={file}
      notes={notes}
      onChange={onChange}
    />
  )
}
