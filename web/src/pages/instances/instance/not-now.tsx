import { Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import type { Instance } from '../../../api/types'
import { IconPlay } from '../../../ui/icons'
import { ReasonedButton } from '../../../ui/reasoned-button'
import { useAsk } from '../actions'

interface Props {
  instance: Instance
  action: 'terminal' | 'logs' | 'open'
}

const WORDS = {
  terminal: 'terminal.needs_running',
  logs: 'logs.not_yet',
  open: 'apps:needs_running',
} as const

/** In place of a tab's content that needs another state; with the way there, if there is one. */
export function NotNow({ instance, action }: Props) {
  const { t } = useTranslation(['streams', 'instances', 'apps', 'common'])
  const { mutate, isPending } = useAsk(instance)
  const state = t(`instances:state.${instance.status.state}`)
  return (
    <Stack align="flex-start">
      <Text>{t(WORDS[action], { state })}</Text>
      {instance.actions.includes('start') && (
        <ReasonedButton
          label={t('instances:start_it', { name: instance.name })}
          leftSection={<IconPlay size={18} />}
          busy={isPending}
          onClick={() => mutate('start')}
        />
      )}
    </Stack>
  )
}
