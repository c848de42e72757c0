import { Alert } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { IconAlert } from '../ui/icons'
import { useLiveState } from './live-context'

/** Says that what is shown may be old. */
export function ConnectionBanner() {
  const { t } = useTranslation()
  if (useLiveState() !== 'lost') return null
  return (
    <Alert
      role="status"
      color="yellow"
      variant="light"
      icon={<IconAlert />}
      mb="md"
      title={t('connection.lost')}
    />
  )
}
