import { SegmentedControl, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { CopyField } from './copy'

interface Props {
  /** The `berth` command with the same effect as the form beside it, where there is one. */
  command?: string
  /** The same by the API. */
  request: string
  /** At once, where there is room for it. */
  open?: boolean
}

type Way = 'command' | 'request'

/** How one does the same without a browser: it teaches the command line to those who start here. */
export function ShowAs({ command, request, open }: Props) {
  const { t } = useTranslation()
  const [chosen, setChosen] = useState<Way>('command')
  const way = command === undefined ? 'request' : chosen
  const shown = (
    <Stack gap={6}>
      {command !== undefined && (
        <SegmentedControl<Way>
          size="xs"
          w="fit-content"
          aria-label={t('show_as.title')}
          data={[
            { value: 'command', label: t('show_as.command') },
            { value: 'request', label: t('show_as.api') },
          ]}
          value={way}
          onChange={setChosen}
        />
      )}
      {way === 'command' && command !== undefined ? (
        <CopyField block text={command} label={t('copy_command')} />
      ) : (
        <CopyField block text={request} label={t('show_as.copy_api')} />
      )}
    </Stack>
  )
  if (open) return shown
  return (
    <details>
      <Text component="summary" size="sm" c="dimmed" mb={6} style={{ cursor: 'pointer' }}>
        {t(command === undefined ? 'show_as.api_only' : 'show_as.title')}
      </Text>
      {shown}
    </details>
  )
}
