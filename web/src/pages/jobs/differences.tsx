import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { convertQuery } from '../../api/jobs'
import { isJson } from '../../forms/file-text'
import type { CodeSide } from '../../ui/code-diff'
import { Section } from '../../ui/section'

const CodeDiff = lazy(async () => ({ default: (await import('../../ui/code-diff')).CodeDiff }))

function side(label: string, text: string, dialect?: string | null): CodeSide {
  return { label, text, language: isJson(text) ? 'json' : dialect === 'dlc' ? 'text' : 'yaml' }
}

/** A file from elsewhere beside what it becomes here. */
export function ConvertedDiff({ file }: { file: string }) {
  const { t } = useTranslation('jobs')
  const { data } = useQuery(convertQuery(file))
  const became = data?.file
  const sides = useMemo(
    () =>
      became && data?.dialect !== 'berth'
        ? {
            before: side(t('converted.before'), file, data?.dialect),
            after: side(t('converted.after'), became),
          }
        : null,
    [file, became, data?.dialect, t],
  )
  return sides && <Diff title={t('converted.diff')} foreign {...sides} />
}

/** The file of a job that is cloned beside what is to be submitted. */
export function CloneDiff({ source, name, file }: { source: string; name: string; file: string }) {
  const { t } = useTranslation('jobs')
  const sides = useMemo(
    () => ({ before: side(t('clone.before', { name }), source), after: side(t('clone.after'), file) }),
    [source, name, file, t],
  )
  if (source === file) return null
  return <Diff title={t('clone.diff', { name })} {...sides} />
}

interface DiffProps {
  title: string
  before: CodeSide
  after: CodeSide
  foreign?: boolean
}

function Diff({ title, ...sides }: DiffProps) {
  return (
    <Section title={title}>
      <Suspense fallback={<Skeleton className="after-a-moment" height={240} />}>
        <CodeDiff {...sides} />
      </Suspense>
    </Section>
  )
}
