import { ActionIcon, Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showTrouble } from '../../../app/trouble'
import { closeTerminal, MAIN_TERMINAL, newTerminalName, terminalsQuery } from '../../../api/terminal'
import type { Instance } from '../../../api/types'
import { ConfirmDialog } from '../../../ui/confirm-dialog'
import { IconClose, IconPlus } from '../../../ui/icons'
import { ReasonedButton } from '../../../ui/reasoned-button'
import { paths } from '../../../util/path-builder'
import { NameTerminal } from './name-terminal'

interface Props {
  instance: Instance
  /** The one on the screen. */
  terminal: string
}

/** All terminals of the instance: they go on whether or not somebody watches. */
export function TerminalStrip({ instance, terminal }: Props) {
  const { t } = useTranslation('streams')
  const cache = useQueryClient()
  const open = useOpenTerminal(instance)
  const { data: listed = [] } = useQuery(terminalsQuery(instance.id))
  const [closing, setClosing] = useState<string | null>(null)
  const names = listed.map((one) => one.name)
  // The one on the screen may be so new that the list does not have it yet.
  const shown = names.includes(terminal) ? names : [...names, terminal]
  const end = useMutation({
    mutationFn: (name: string) => closeTerminal(instance.id, name),
    onSuccess: async (_, name) => {
      setClosing(null)
      const other = names.find((one) => one !== name)
      if (name === terminal && other !== undefined) open(other)
      await cache.invalidateQueries({ queryKey: terminalsQuery(instance.id).queryKey })
    },
    onError: showTrouble,
  })
  const openNew = useMutation({
    // What others have opened meanwhile is not to be opened as if it were new.
    mutationFn: () => cache.fetchQuery({ ...terminalsQuery(instance.id), staleTime: 0 }),
    onSuccess: (now) => open(newTerminalName(now.map((one) => one.name))),
    onError: showTrouble,
  })
  return (
    <Group gap="xs" role="group" aria-label={t('terminal.all')}>
      {shown.map((name) => (
        <Group key={name} gap={0} wrap="nowrap">
          <Button
            size="compact-sm"
            variant={name === terminal ? 'light' : 'subtle'}
            color={name === terminal ? undefined : 'gray'}
            aria-current={name === terminal ? 'true' : undefined}
            onClick={() => open(name)}
          >
            {name === MAIN_TERMINAL ? t('terminal.main') : name}
          </Button>
          <ActionIcon
            size={24}
            variant="subtle"
            color="gray"
            aria-label={t('terminal.close', { terminal: name })}
            onClick={() => setClosing(name)}
          >
            <IconClose size={14} />
          </ActionIcon>
        </Group>
      ))}
      <ReasonedButton
        label={t('terminal.new')}
        size="compact-sm"
        variant="default"
        leftSection={<IconPlus size={14} />}
        busy={openNew.isPending}
        onClick={() => openNew.mutate()}
      />
      <NameTerminal onNamed={open} />
      <ConfirmDialog
        opened={closing !== null}
        title={t('terminal.close_title', { terminal: closing ?? '' })}
        confirm={t('terminal.close_confirm')}
        busy={end.isPending}
        onConfirm={() => closing !== null && end.mutate(closing)}
        onClose={() => setClosing(null)}
      >
        <Text size="sm">{t('terminal.close_text')}</Text>
      </ConfirmDialog>
    </Group>
  )
}

function useOpenTerminal(instance: Instance) {
  const navigate = useNavigate()
  return (name: string) => {
    const tab = paths.instance(instance, 'terminal')
    void navigate({ href: name === MAIN_TERMINAL ? tab : `${tab}?terminal=${name}` })
  }
}
