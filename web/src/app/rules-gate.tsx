import { Button, Group, Stack, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { acceptRules, rulesQuery, textFor } from '../api/notices'
import { Dialog } from '../ui/dialog'
import { ReasonedButton } from '../ui/reasoned-button'
import { Trouble } from './trouble'

/** Shows the rules of the place to whoever has not agreed to them as they are now. */
export function RulesGate({ onLeave }: { onLeave: () => void }) {
  const { t } = useTranslation('home')
  const cache = useQueryClient()
  const { data: rules } = useQuery(rulesQuery)
  const accept = useMutation({
    mutationFn: acceptRules,
    onSuccess: (now) => cache.setQueryData(rulesQuery.queryKey, now),
  })
  if (!rules || rules.accepted) return null
  return (
    <Dialog opened stays title={t('rules_gate.title')} onClose={onLeave}>
      <Stack>
        <Text className="breakable" style={{ whiteSpace: 'pre-line' }}>
          {textFor(rules.text)}
        </Text>
        {accept.error && <Trouble error={accept.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onLeave}>
            {t('rules_gate.leave')}
          </Button>
          <ReasonedButton
            label={t('rules_gate.agree')}
            busy={accept.isPending}
            onClick={() => accept.mutate(rules.version)}
          />
        </Group>
      </Stack>
    </Dialog>
  )
}
