import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { useWhyNot } from '../../../app/why-not'
import type { Instance } from '../../../api/types'
import { IconPlay } from '../../../ui/icons'
import { ReasonedButton } from '../../../ui/reasoned-button'
import { useStart } from '../use-start'

interface Props {
  instance: Instance
  action: 'terminal' | 'logs' | 'open'
}

/** In place of a tab's content that cannot be had: why, and the way there, if there is one. */
export function NotNow({ instance, action }: Props) {
  const { t } = useTranslation('instances')
  const whyNot = useWhyNot(instance)
  const { start, busy, question } = useStart(instance)
  return (
    <Stack align="flex-start">
      <Text>{whyNot(action)}</Text>
      {instance.actions.includes('start') && (
        <ReasonedButton
          label={t('start_it', { name: instance.name })}
          leftSection={<IconPlay size={18} />}
          busy={busy}
          onClick={start}
        />
      )}
      {question}
    </Stack>
  )
}
