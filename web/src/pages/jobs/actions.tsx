import { Button, Group, NumberInput, Stack, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { useClusters } from '../../app/place-select'
import { showDone, showTrouble, Trouble } from '../../app/trouble'
import { useWhyNotJob } from '../../app/why-not'
import { changeJob, deleteJob, refetchJobs, rerunJob, stopJob } from '../../api/jobs'
import { meQuery } from '../../api/session'
import type { Job } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { Dialog } from '../../ui/dialog'
import { IconChart, IconClock, IconClone, IconRestart, IconStop, IconTrash } from '../../ui/icons'
import { ShowAs } from '../../ui/show-as'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, limitJobCommand } from '../../util/cli-command'
import { HOUR_S } from '../../util/format'
import { later } from '../../util/later'
import { paths } from '../../util/path-builder'

const TensorboardDialog = later(async () => ({
  default: (await import('../instances/tensorboard-dialog')).TensorboardDialog,
}))

interface Props {
  job: Job
  compact?: boolean
  onDeleted?: () => void
}

/** What can be done with a job now. The gateway says what; this only draws it. */
export function JobActions({ job, compact, onDeleted }: Props) {
  const { t } = useTranslation('jobs')
  const navigate = useNavigate()
  const [asked, setAsked] = useState<'stop' | 'delete' | 'change' | null>(null)
  const close = () => setAsked(null)
  const { stop, remove, rerun } = useActs(job, close, onDeleted)
  const reason = useWhyNotJob(job)
  return (
    <Group gap={compact ? 2 : 'xs'} wrap={compact ? 'nowrap' : 'wrap'}>
      <ActionButton
        compact={compact}
        label={t('action.clone')}
        icon={IconClone}
        reason={reason('rerun')}
        onClick={() => void navigate({ to: paths.cloneOfJob(job.id) })}
      />
      <ActionButton
        compact={compact}
        label={t('action.rerun')}
        icon={IconRestart}
        reason={reason('rerun')}
        busy={rerun.isPending}
        onClick={() => rerun.mutate()}
      />
      <ActionButton
        compact={compact}
        label={t('action.change')}
        icon={IconClock}
        reason={reason('change')}
        onClick={() => setAsked('change')}
      />
      <ActionButton
        compact={compact}
        label={t('action.stop')}
        icon={IconStop}
        reason={reason('stop')}
        busy={stop.isPending}
        onClick={() => setAsked('stop')}
      />
      <ActionButton
        compact={compact}
        danger
        label={t('action.delete')}
        icon={IconTrash}
        reason={reason('delete')}
        busy={remove.isPending}
        onClick={() => setAsked('delete')}
      />
      {!compact && job.ended_at && <Board job={job} />}
      <ConfirmDialog
        opened={asked === 'stop'}
        title={t('stop.title', { name: job.name })}
        confirm={t('action.stop')}
        busy={stop.isPending}
        onConfirm={() => stop.mutate()}
        onClose={close}
      >
        <Text size="sm">{t('stop.text')}</Text>
      </ConfirmDialog>
      <ConfirmDialog
        opened={asked === 'delete'}
        title={t('delete.title', { name: job.name })}
        confirm={t('action.delete')}
        busy={remove.isPending}
        onConfirm={() => remove.mutate()}
        onClose={close}
      >
        <Text size="sm">{t('delete.text')}</Text>
      </ConfirmDialog>
      <Dialog typed opened={asked === 'change'} title={t('change.title', { name: job.name })} onClose={close}>
        <ChangeForm job={job} onClose={close} />
      </Dialog>
    </Group>
  )
}

/** What a job that has ended left in a folder: its tasks have no TensorBoard any more. */
function Board({ job }: { job: Job }) {
  const { t } = useTranslation('jobs')
  const [first] = useClusters()
  const [asked, setAsked] = useState<boolean | null>(null)
  return (
    <>
      <ActionButton label={t('action.board')} icon={IconChart} onClick={() => setAsked(true)} />
      {asked !== null && (
        <Suspense fallback={null}>
          <TensorboardDialog
            opened={asked}
            cluster={job.cluster === first ? undefined : job.cluster}
            onClose={() => setAsked(false)}
          />
        </Suspense>
      )}
    </>
  )
}

function useActs(job: Job, close: () => void, onDeleted?: () => void) {
  const { t } = useTranslation('jobs')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const after = {
    onError: showTrouble,
    onSettled: () => {
      close()
      return refetchJobs(cache)
    },
  }
  const stop = useMutation({ mutationFn: () => stopJob(job.id), ...after })
  const remove = useMutation({
    mutationFn: () => deleteJob(job.id),
    onSuccess: () => {
      showDone(t('delete.asked', { name: job.name }))
      onDeleted?.()
    },
    ...after,
  })
  const rerun = useMutation({
    mutationFn: () => rerunJob(job.id),
    onSuccess: (again) => {
      showDone(t('rerun.done', { name: again.name }))
      return navigate({ to: paths.job(again) })
    },
    ...after,
  })
  return { stop, remove, rerun }
}

function ChangeForm({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation(['jobs', 'common'])
  const cache = useQueryClient()
  const [hours, setHours] = useState<number | string>((job.time_limit_seconds ?? 0) / HOUR_S)
  const { data: me } = useQuery(meQuery)
  const wanted = { time_limit_seconds: Math.round(Number(hours) * HOUR_S) }
  const change = useMutation({
    mutationFn: () => changeJob(job.id, wanted),
    onSuccess: async () => {
      showDone(t('change.done'))
      onClose()
      await refetchJobs(cache)
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        change.mutate()
      }}
    >
      <Stack>
        {change.error && <Trouble error={change.error} />}
        <NumberInput
          label={t('change.hours')}
          description={t('change.hours_help')}
          min={0}
          clampBehavior="none"
          value={hours}
          onChange={setHours}
          data-autofocus
        />
        <ShowAs
          command={limitJobCommand(job.user === me?.name ? job.name : job.id, wanted.time_limit_seconds)}
          request={apiRequest('PATCH', `/jobs/${job.id}`, wanted)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton label={t('common:save')} busy={change.isPending} />
        </Group>
      </Stack>
    </form>
  )
}
