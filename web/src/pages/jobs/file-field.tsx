import { Textarea } from '@mantine/core'
import { useTranslation } from 'react-i18next'

interface Props {
  file: string
  onChange: (text: string) => void
}

export function FileField({ file, onChange }: Props) {
  const { t } = useTranslation('jobs')
  return (
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
  )
}
