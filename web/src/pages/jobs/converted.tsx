import { Badge, Button, Group, List, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { convertQuery } from '../../api/jobs'
import { noteText } from '../../api/job-notes'
import type { JobNote } from '../../api/types'
import { CopyButton } from '../../ui/copy'
import { Section } from '../../ui/section'

interface Props {
  file: string
  /** Goes on with the job in our own words. */
  onUse: (file: string) => void
}

/** What a file from elsewhere becomes here, and what of it is otherwise. */
export function ConvertedFile({ file, onUse }: Props) {
  const { t } = useTranslation('jobs')
  const { data, error } = useQuery(convertQuery(file))
  if (error) return <Trouble error={error} />
  if (!data?.dialect || data.dialect === 'berth') return null
  const became = data.file
  return (
    <Section
      title={t('converted.title')}
      aside={
        <Badge variant="light" tt="none">
          {t(`dialect.${data.dialect}`, { defaultValue: data.dialect })}
        </Badge>
      }
    >
      <Notes notes={data.notes.filter(({ level }) => level === 'warning')} />
      {became && (
        <>
          <Text size="sm" c="dimmed">
            {t('converted.text')}
          </Text>
          <Group gap="xs">
            <Button variant="default" size="xs" onClick={() => onUse(became)}>
              {t('converted.use')}
            </Button>
            <CopyButton text={became} label={t('file.copy')} />
          </Group>
        </>
      )}
    </Section>
  )
}

/** What is to be said about a job file, each with its line. */
export function Notes({ notes }: { notes: readonly JobNote[] }) {
  const { t } = useTranslation('jobs')
  const { t: translate } = useTranslation('notes')
  if (notes.length === 0) return null
  return (
    <List size="sm">
      {notes.map((note) => {
        const { what, hint } = noteText(note, translate)
        return (
          <List.Item key={`${note.line}:${note.pointer}:${note.code}`} className="breakable">
            <Stack gap={0}>
              <span>{note.line ? t('note_at', { line: note.line, message: what }) : what}</span>
              {hint && (
                <Text size="sm" c="dimmed">
                  {hint}
                </Text>
              )}
            </Stack>
          </List.Item>
        )
      })}
    </List>
  )
}
