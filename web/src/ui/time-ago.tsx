import { Text, Tooltip } from '@mantine/core'
import { useInterval } from '@mantine/hooks'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { formatAgo, formatExact } from '../util/format'

/** A point in time, relative; the exact one on hover and focus. */
export function TimeAgo({ at }: { at: string }) {
  const { t, i18n } = useTranslation()
  const [now, setNow] = useState(() => new Date())
  useInterval(() => setNow(new Date()), 30_000, { autoInvoke: true })
  const then = new Date(at)
  return (
    <Tooltip label={formatExact(then, i18n.language)}>
      <Text
        component="time"
        dateTime={at}
        size="sm"
        tabIndex={0}
        className="numbers"
        style={{ whiteSpace: 'nowrap' }}
      >
        {formatAgo(then, now, i18n.language) ?? t('just_now')}
      </Text>
    </Tooltip>
  )
}
