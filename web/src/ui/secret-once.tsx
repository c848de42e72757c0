import { Alert, Button, Group, Stack } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { saveFile } from '../util/save-file'
import { CopyField } from './copy'
import { IconAlert, IconDownload } from './icons'

interface Props {
  /** What it is, and that it is shown this once. */
  title: string
  secret: string
  label: string
  /** Offers the secret as a file of this name. */
  file?: string
}

/** Something that nobody can show again. */
export function SecretOnce({ title, secret, label, file }: Props) {
  const { t } = useTranslation()
  return (
    <Alert color="yellow" icon={<IconAlert />} title={title} role="status">
      <Stack gap="xs">
        <CopyField block text={secret} label={label} />
        {file && (
          <Group>
            <Button
              size="xs"
              variant="default"
              leftSection={<IconDownload size={16} />}
              onClick={() => saveFile(file, secret)}
            >
              {t('download_file', { file })}
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  )
}
