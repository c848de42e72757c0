import { Alert, Button, Group, NumberInput, SimpleGrid, Stack, Text } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, Trouble } from '../../app/trouble'
import { quotaQuery, type QuotaOwner, setQuota } from '../../api/people'
import type { Quota, QuotaLimits } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { Dialog } from '../../ui/dialog'
import { IconQuota } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { ShowAsCommand } from '../../ui/show-as-command'
import { TimeAgo } from '../../ui/time-ago'
import { quotaCommand } from '../../util/cli-command'
import { GIB } from '../../util/format'

interface OwnerProps {
  owner: QuotaOwner
  reason?: string
}

/** The most that a user or a group may hold at a time. */
export function QuotaButton({ owner, reason }: OwnerProps) {
  const { t } = useTranslation('admin')
  const [opened, setOpened] = useState(false)
  const title = t('quota.of', { name: owner.name })
  return (
    <>
      <ActionButton compact label={title} icon={IconQuota} reason={reason} onClick={() => setOpened(true)} />
      <Dialog opened={opened} title={title} onClose={() => setOpened(false)}>
        <Quotas owner={owner} onClose={() => setOpened(false)} />
      </Dialog>
    </>
  )
}

function Quotas({ owner, onClose }: { owner: QuotaOwner; onClose: () => void }) {
  const { data, error, isPending } = useQuery(quotaQuery(owner))
  return (
    <Stack>
      {error && <Trouble error={error} />}
      {isPending && <LoadingRows rows={2} />}
      {data && <QuotaForm owner={owner} quota={data} onClose={onClose} />}
    </Stack>
  )
}

type Values = Record<'gpus' | 'cpus' | 'memoryGib' | 'instances' | 'jobs', number | string>

const FIELDS = ['gpus', 'cpus', 'memoryGib', 'instances', 'jobs'] as const

function valuesOf(limits: QuotaLimits = {}): Values {
  const { gpus, cpus, memory_bytes: memory, instances, jobs } = limits
  return {
    gpus: gpus ?? '',
    cpus: cpus ?? '',
    memoryGib: typeof memory === 'number' ? memory / GIB : '',
    instances: instances ?? '',
    jobs: jobs ?? '',
  }
}

/** What is typed, if it is a number by now. */
function typed(value: number | string): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Limits by model stay as they are: the form does not show them. */
function limitsFrom(values: Values, before: QuotaLimits = {}): QuotaLimits {
  const memory = typed(values.memoryGib)
  return {
    ...before,
    gpus: typed(values.gpus),
    cpus: typed(values.cpus),
    memory_bytes: memory === undefined ? undefined : Math.round(memory * GIB),
    instances: typed(values.instances),
    jobs: typed(values.jobs),
  }
}

interface FormProps {
  owner: QuotaOwner
  quota: Quota
  onClose: () => void
}

function QuotaForm({ owner, quota, onClose }: FormProps) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const form = useForm<Values>({ initialValues: valuesOf(quota.limits) })
  const limits = limitsFrom(form.values, quota.limits)
  const set = useMutation({
    mutationFn: () => setQuota(owner, { ...quota, limits }),
    onSuccess: (now) => {
      cache.setQueryData(quotaQuery(owner).queryKey, now)
      showDone(t('quota.set', { name: owner.name }))
      onClose()
    },
  })
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        set.mutate()
      }}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {t(`quota.text_${owner.kind}`)}
        </Text>
        {set.error && <Trouble error={set.error} />}
        {quota.raise && (
          <Alert color="blue" title={t('quota.raised')}>
            <TimeAgo at={quota.raise.until} />
          </Alert>
        )}
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          {FIELDS.map((field) => (
            <NumberInput
              key={field}
              label={t(`quota.${field}`)}
              placeholder={t('quota.no_limit')}
              min={0}
              allowDecimal={field === 'cpus' || field === 'memoryGib'}
              clampBehavior="none"
              {...form.getInputProps(field)}
            />
          ))}
        </SimpleGrid>
        <ShowAsCommand command={quotaCommand(owner, limits)} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <Button type="submit" loading={set.isPending}>
            {t('common:save')}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
