import { Group } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble } from '../../app/trouble'
import { useWhyNot } from '../../app/why-not'
import { ask, refetchInstances, type Request } from '../../api/instances'
import type { Instance } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { IconClone, IconPlay, IconRestart, IconSave, IconStop, IconTerminal, IconTrash } from '../../ui/icons'
import { later } from '../../util/later'
import { paths } from '../../util/path-builder'
import { AskFirst, type Ending } from './ask-first'
import { OpenMenu } from './open-menu'
import { useStart } from './use-start'

/** Nobody who only looks at a list pays for it. */
const SaveDialog = later(async () => ({ default: (await import('./save-dialog')).SaveDialog }))

const ICONS = {
  terminal: IconTerminal,
  start: IconPlay,
  stop: IconStop,
  restart: IconRestart,
  save: IconSave,
  clone: IconClone,
  delete: IconTrash,
} as const

type Shown = keyof typeof ICONS

const ORDER: readonly Shown[] = ['terminal', 'start', 'stop', 'restart', 'save', 'clone', 'delete']
const FOR_OVERSEERS: readonly Shown[] = ['stop', 'delete']
const ENDINGS: readonly Ending[] = ['stop', 'restart', 'delete']

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
  const [asked, setAsked] = useState<Ending | null>(null)
  // Null until it is first asked for.
  const [saving, setSaving] = useState<'open' | 'then_stop' | 'closed' | null>(null)
  const { mutate, isPending, variables } = useAsk(instance)
  const { start, busy: starting, question } = useStart(instance)

  const reason = useWhyNot(instance)

  const press = (action: Shown) => {
    if (action === 'terminal') void navigate({ to: paths.instance(instance, 'terminal') })
    else if (action === 'save') setSaving('open')
    else if (action === 'clone') void navigate({ to: paths.cloneOf(instance.id) })
    else if (action === 'start') start()
    else setAsked(action)
  }

  const end = (ending: Ending) =>
    mutate(ending, {
      onSuccess: () => {
        if (ending !== 'delete') return
        showDone(t('delete.asked', { name: instance.name }))
        onDeleted?.()
      },
      onSettled: () => setAsked(null),
    })

  return (
    <Group gap={compact ? 2 : 'xs'} wrap={compact ? 'nowrap' : 'wrap'}>
      {!overseer && <OpenMenu instance={instance} compact={compact} />}
      {(overseer ? FOR_OVERSEERS : ORDER).map((action) => (
        <ActionButton
          key={action}
          label={t(`action.${action}`)}
          icon={ICONS[action]}
          // Its owner may make the like of it however it is.
          reason={action === 'clone' ? undefined : reason(action)}
          busy={action === 'start' ? starting : isPending && variables === action}
          compact={compact}
          danger={action === 'delete'}
          onClick={() => press(action)}
        />
      ))}
      {question}
      {saving !== null && (
        <Suspense fallback={null}>
          <SaveDialog
            instance={instance}
            opened={saving !== 'closed'}
            thenStop={saving === 'then_stop'}
            onClose={() => setSaving('closed')}
          />
        </Suspense>
      )}
      {ENDINGS.map((ending) => (
        <AskFirst
          key={ending}
          instance={instance}
          ending={ending}
          opened={asked === ending}
          busy={isPending && variables === ending}
          onConfirm={() => end(ending)}
          onSave={() => {
            setAsked(null)
            setSaving(ending === 'stop' ? 'then_stop' : 'open')
          }}
          onClose={() => setAsked(null)}
        />
      ))}
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
