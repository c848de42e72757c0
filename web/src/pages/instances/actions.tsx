import { Group, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble } from '../../app/trouble'
import { useWhyNot } from '../../app/why-not'
import { ask, refetchInstances, type Request } from '../../api/instances'
import type { Instance } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { IconPlay, IconRestart, IconSave, IconStop, IconTerminal, IconTrash } from '../../ui/icons'
import { later } from '../../util/later'
import { paths } from '../../util/path-builder'
import { OpenMenu } from './open-menu'

/** Nobody who only looks at a list pays for it. */
const SaveDialog = later(async () => ({ default: (await import('./save-dialog')).SaveDialog }))

const ICONS = {
  terminal: IconTerminal,
  start: IconPlay,
  stop: IconStop,
  restart: IconRestart,
  save: IconSave,
  delete: IconTrash,
} as const

type Shown = keyof typeof ICONS

const ORDER: readonly Shown[] = ['terminal', 'start', 'stop', 'restart', 'save', 'delete']
const FOR_OVERSEERS: readonly Shown[] = ['stop', 'delete']

interface Props {
  instance: Instance
  compact?: boolean
  /** Somebody else's: only what an overseer can do with it. */
  overseer?: boolean
  /** Where the page itself is about the instance: it leaves once the instance is being deleted. */
  onDeleted?: () => void
}

/** What can be done with an instance now. The gateway says what; this only draws it. */
export function InstanceActions({ instance, compact, overseer, onDeleted }: Props) {
  const { t } = useTranslation('instances')
  const navigate = useNavigate()
  const [asking, setAsking] = useState(false)
  // Null until it is first asked for.
  const [saving, setSaving] = useState<boolean | null>(null)
  const { mutate, isPending, variables } = useAsk(instance)
  const name = instance.name

  const reason = useWhyNot(instance)

  const press = (action: Shown) => {
    if (action === 'terminal') void navigate({ to: paths.instance(instance, 'terminal') })
    else if (action === 'delete') setAsking(true)
    else if (action === 'save') setSaving(true)
    else mutate(action)
  }

  const remove = () =>
    mutate('delete', {
      onSuccess: () => {
        setAsking(false)
        showDone(t('delete.asked', { name }))
        onDeleted?.()
      },
      onError: () => setAsking(false),
    })

  return (
    <Group gap={compact ? 2 : 'xs'} wrap={compact ? 'nowrap' : 'wrap'}>
      {!overseer && <OpenMenu instance={instance} compact={compact} />}
      {(overseer ? FOR_OVERSEERS : ORDER).map((action) => (
        <ActionButton
          key={action}
          label={t(`action.${action}`)}
          icon={ICONS[action]}
          reason={reason(action)}
          busy={isPending && variables === action}
          compact={compact}
          danger={action === 'delete'}
          onClick={() => press(action)}
        />
      ))}
      {saving !== null && (
        <Suspense fallback={null}>
          <SaveDialog instance={instance} opened={saving} onClose={() => setSaving(false)} />
        </Suspense>
      )}
      <ConfirmDialog
        opened={asking}
        title={t('delete.title', { name })}
        confirm={t('delete.confirm')}
        busy={isPending && variables === 'delete'}
        onConfirm={remove}
        onClose={() => setAsking(false)}
      >
        <Text size="sm">{t('delete.lost')}</Text>
        <Text size="sm">{t('delete.kept')}</Text>
      </ConfirmDialog>
    </Group>
  )
}

/** Asks the gateway, then reads the new state from it rather than trusting an answer that events may have overtaken. */
export function useAsk(instance: Instance) {
  const cache = useQueryClient()
  return useMutation({
    mutationFn: (request: Request) => ask(request, instance.id),
    onError: showTrouble,
    onSettled: () => refetchInstances(cache),
  })
}
