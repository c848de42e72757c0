import { NativeSelect, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble } from '../../app/trouble'
import { ask } from '../../api/instances'
import { changeJob, stopJob } from '../../api/jobs'
import { queueQuery } from '../../api/queue'
import type { Queued } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { IconStop } from '../../ui/icons'

type Work = NonNullable<Queued['work']>

const PRIORITIES = ['9', '8', '7', '6', '5', '4', '3', '2', '1']

function useReadAgain() {
  const cache = useQueryClient()
  return () => cache.invalidateQueries({ queryKey: queueQuery.queryKey })
}

/** Where it stands among what waits; a job's can be changed while it waits. */
export function Priority({ queued: { kind, work, priority } }: { queued: Queued }) {
  const { t } = useTranslation('jobs')
  const readAgain = useReadAgain()
  const change = useMutation({
    mutationFn: ({ id, wanted }: { id: string; wanted: number }) => changeJob(id, { priority: wanted }),
    onSuccess: () => showDone(t('queue.priority_changed')),
    onError: showTrouble,
    onSettled: readAgain,
  })
  if (!work || kind !== 'job') {
    return (
      <Text size="sm" className="numbers">
        {priority}
      </Text>
    )
  }
  return (
    <NativeSelect
      size="xs"
      w={64}
      aria-label={t('queue.priority_of', { name: work.name })}
      data={PRIORITIES}
      value={String(change.isPending ? change.variables.wanted : priority)}
      onChange={(event) => change.mutate({ id: work.id, wanted: Number(event.currentTarget.value) })}
    />
  )
}

/** Takes it out of the line. */
export function Leave({ kind, work }: { kind: Queued['kind']; work: Work }) {
  const { t } = useTranslation('jobs')
  const [asked, setAsked] = useState(false)
  const readAgain = useReadAgain()
  const stop = useMutation({
    mutationFn: async () => void (kind === 'job' ? await stopJob(work.id) : await ask('stop', work.id)),
    onError: showTrouble,
    onSettled: () => {
      setAsked(false)
      return readAgain()
    },
  })
  return (
    <>
      <ActionButton
        compact
        label={t('queue.leave')}
        icon={IconStop}
        busy={stop.isPending}
        onClick={() => setAsked(true)}
      />
      <ConfirmDialog
        opened={asked}
        title={t('queue.leave_title', { name: work.name })}
        confirm={t('queue.leave')}
        busy={stop.isPending}
        onConfirm={() => stop.mutate()}
        onClose={() => setAsked(false)}
      >
        <Text size="sm">{t(`queue.leave_text_${kind}`)}</Text>
      </ConfirmDialog>
    </>
  )
}
