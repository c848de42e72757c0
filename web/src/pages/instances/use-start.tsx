import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showTrouble, Trouble } from '../../app/trouble'
import { refetchInstances, startInstance } from '../../api/instances'
import { refetchJobs } from '../../api/jobs'
import type { Instance } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { ReasonedButton } from '../../ui/reasoned-button'

/** Starting an instance: the act, and what it may have to ask first. */
export interface Start {
  start: () => void
  busy: boolean
  question: ReactNode
}

/**
 * Starts an instance. What a failed task left is opened without GPUs unless somebody wants them, so that is asked where
 * the task had some.
 */
export function useStart(instance: Instance, gpus = instance.gpus): Start {
  const cache = useQueryClient()
  const [asked, setAsked] = useState(false)
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: (wanted?: number) => startInstance(instance.id, wanted),
    onSuccess: () => setAsked(false),
    onSettled: () => Promise.all([refetchInstances(cache), instance.job ? refetchJobs(cache) : undefined]),
  })
  const asks = Boolean(instance.job) && gpus > 0
  return {
    busy: isPending,
    start: () => {
      if (!asks) return mutate(undefined, { onError: showTrouble })
      reset()
      setAsked(true)
    },
    question: asks && (
      <HowManyGpus
        name={instance.name}
        most={gpus}
        opened={asked}
        busy={isPending}
        error={error}
        onStart={(wanted) => mutate(wanted)}
        onClose={() => setAsked(false)}
      />
    ),
  }
}

interface Props {
  name: string
  most: number
  opened: boolean
  busy: boolean
  error: Error | null
  onStart: (gpus: number) => void
  onClose: () => void
}

function HowManyGpus({ name, most, opened, busy, error, onStart, onClose }: Props) {
  const { t } = useTranslation(['instances', 'common'])
  const [gpus, setGpus] = useState('0')
  const label = t('start_task.gpus')
  return (
    <Dialog opened={opened} title={t('start_task.title', { name })} onClose={onClose}>
      <Stack>
        <Text size="sm">{t('start_task.text')}</Text>
        {error && <Trouble error={error} />}
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            {label}
          </Text>
          <Text size="xs" c="dimmed">
            {t('start_task.gpus_help')}
          </Text>
          <SegmentedControl
            aria-label={label}
            data={Array.from({ length: most + 1 }, (_, count) => String(count))}
            value={gpus}
            onChange={setGpus}
          />
        </Stack>
        <Group justify="flex-end">
          <Button variant="default" data-autofocus onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <ReasonedButton label={t('start_task.start')} busy={busy} onClick={() => onStart(Number(gpus))} />
        </Group>
      </Stack>
    </Dialog>
  )
}
