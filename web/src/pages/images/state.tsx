import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import type { Image } from '../../api/types'
import { IconAlert, IconCircleCheck, IconLoader, IconTrash } from '../../ui/icons'
import { StateBadge } from '../../ui/state-badge'
import { Transfer } from '../../ui/transfer'
import { never } from '../../util/never'

/** How far a saved image is: the step, the bytes, or why there is none. */
export function ImageStanding({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  if (!image.saved) return null
  const { name, state } = image.saved
  switch (state.state) {
    case 'saving':
      return (
        <Stack gap={4} align="flex-start">
          <StateBadge color="blue" icon={IconLoader} turning label={t('state.saving')} />
          <Text size="xs" c="dimmed" role="status">
            {t(`step.${state.step}`)}
          </Text>
          {state.done_bytes > 0 && (
            <Transfer
              label={t('progress', { name })}
              done={state.done_bytes}
              total={state.total_bytes ?? null}
            />
          )}
        </Stack>
      )
    case 'ready':
      return <StateBadge color="green" icon={IconCircleCheck} label={t('state.ready')} />
    case 'failed':
      return (
        <Stack gap={4} align="flex-start">
          <StateBadge color="red" icon={IconAlert} label={t('state.failed')} />
          <Text size="xs" c="dimmed" className="breakable">
            {t(`failure.${state.failure}`, { message: state.message })}
          </Text>
        </Stack>
      )
    case 'deleting':
      return <StateBadge color="gray" icon={IconTrash} label={t('state.deleting')} />
    default:
      return never(state)
  }
}
