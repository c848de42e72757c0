import { Group, SegmentedControl, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import type { FileFormat } from '../forms/file-text'
import { TextFileButton } from './text-file-button'

/** How something is described: in a form, or as the file that the form writes. */
export type FileMode = 'form' | 'text'

interface Props {
  mode: FileMode
  onMode: (mode: FileMode) => void
  format: FileFormat
  onFormat: (format: FileFormat) => void
  onFile: (text: string) => void
  /** Why the form cannot show it. */
  noForm?: string
}

/** Form or text, YAML or JSON, or a file that is there already. */
export function FileModes({ mode, onMode, format, onFormat, onFile, noForm }: Props) {
  const { t } = useTranslation('jobs')
  return (
    <Group justify="space-between">
      <Group>
        {noForm === undefined ? (
          <SegmentedControl<FileMode>
            aria-label={t('new.mode')}
            data={[
              { value: 'form', label: t('new.form') },
              { value: 'text', label: t('new.text') },
            ]}
            value={mode}
            onChange={onMode}
          />
        ) : (
          <Text size="sm" c="dimmed" role="status">
            {noForm}
          </Text>
        )}
        {mode === 'text' && noForm === undefined && (
          <SegmentedControl<FileFormat>
            aria-label={t('new.format')}
            data={[
              { value: 'yaml', label: 'YAML' },
              { value: 'json', label: 'JSON' },
            ]}
            value={format}
            onChange={onFormat}
          />
        )}
      </Group>
      <TextFileButton label={t('new.import')} onText={onFile} />
    </Group>
  )
}
