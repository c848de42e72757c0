import { Alert, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { IconAlert } from '../ui/icons'
import { type End, endText } from './end-text'

interface Props {
  title: string
  end: End
  /** What more there is to see. */
  children?: ReactNode
}

/** The reason, in words, with what to do about it. */
export function HowItEnded({ title, end, children }: Props) {
  const { t } = useTranslation('jobs')
  const stopped = end.cause === 'stopped'
  return (
    <Alert color={stopped ? 'gray' : 'red'} icon={<IconAlert />} title={title} role="status">
      <Stack gap={4}>
        <Text size="sm" className="breakable">
          {endText(end, t)}
        </Text>
        {end.cause !== 'stopped' && <Text size="sm">{t(`advice.${end.cause}`)}</Text>}
        {children}
      </Stack>
    </Alert>
  )
}
