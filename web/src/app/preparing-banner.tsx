import { Alert, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { preparingQuery, preparingText } from '../api/preparing'
import type { PreparingStep } from '../api/types'
import { IconAlert, IconHourglass } from '../ui/icons'

interface Props {
  /** The steps that matter on this page. */
  of: readonly PreparingStep['what'][]
}

/** Says what the site still prepares, and what it could not prepare. */
export function PreparingBanner({ of }: Props) {
  const { t } = useTranslation()
  const { data = [] } = useQuery(preparingQuery)
  const shown = data.filter(({ what, state }) => state !== 'done' && of.includes(what))
  if (shown.length === 0) return null
  const failed = shown.some(({ state }) => state === 'failed')
  return (
    <Alert
      role="note"
      color={failed ? 'yellow' : 'blue'}
      variant="light"
      py="xs"
      icon={failed ? <IconAlert /> : <IconHourglass />}
    >
      {shown.map((step) => (
        <Text key={step.what} size="sm" className="numbers">
          {preparingText(step, t)}
        </Text>
      ))}
    </Alert>
  )
}
