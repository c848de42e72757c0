import { Alert, Button, Group, NumberInput, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core'
import { useForm, type UseFormReturnType } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, Trouble } from '../../app/trouble'
import { quotaQuery, type QuotaOwner, setQuota } from '../../api/people'
import { meQuery } from '../../api/session'
import { clusterQuery } from '../../api/site'
import type { Quota } from '../../api/types'
import { limitsFrom, QUOTA_FIELDS, quotaFrom, quotaValues, type QuotaValues } from '../../forms/quota'
import { ActionButton } from '../../ui/action-button'
import { Dialog } from '../../ui/dialog'
import { IconQuota } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { ShowAs } from '../../ui/show-as'
import { TimeAgo } from '../../ui/time-ago'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest, quotaCommand } from '../../util/cli-command'
import { sumsByModel } from '../../util/free-blocks'

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
      <Dialog typed opened={opened} title={title} onClose={() => setOpened(false)}>
        <Quotas owner={owner} onClose={() => setOpened(false)} />
      </Dialog>
    </>
  )
}

type Lasting = 'always' | 'while'

function Quotas({ owner, onClose }: { owner: QuotaOwner; onClose: () => void }) {
  const { t } = useTranslation('admin')
  const { data, error, isPending } = useQuery(quotaQuery(owner))
  const { data: me } = useQuery(meQuery)
  const [lasting, setLasting] = useState<Lasting>('always')
  return (
    <Stack>
      {error && <Trouble error={error} />}
      {isPending && <LoadingRows rows={2} />}
      {data && me?.role !== 'admin' && <SeenQuota owner={owner} quota={data} />}
      {data && me?.role === 'admin' && (
        <>
          <SegmentedControl<Lasting>
            aria-label={t('quota.lasting')}
            data={[
              { value: 'always', label: t('quota.always') },
              { value: 'while', label: t('quota.while') },
            ]}
            value={lasting}
            onChange={setLasting}
          />
          {data.raise && (
            <Alert color="blue" title={t('quota.raised')}>
              <TimeAgo at={data.raise.until} />
            </Alert>
          )}
          <QuotaForm key={lasting} owner={owner} quota={data} raise={lasting === 'while'} onClose={onClose} />
        </>
      )}
    </Stack>
  )
}

/** For whoever oversees but does not set: what holds now. */
function SeenQuota({ owner, quota: { limits, raise } }: { owner: QuotaOwner; quota: Quota }) {
  const { t } = useTranslation('admin')
  const form = useForm<QuotaValues>({ initialValues: quotaValues({ ...limits, ...raise?.limits }) })
  return (
    <>
      <Text size="sm" c="dimmed">
        {t(`quota.text_${owner.kind}`)} {t('quota.only_admins')}
      </Text>
      {raise && (
        <Alert color="blue" title={t('quota.raised')}>
          <TimeAgo at={raise.until} />
        </Alert>
      )}
      <Limits form={form} placeholder={t('quota.no_limit')} readOnly />
    </>
  )
}

interface FormProps {
  owner: QuotaOwner
  quota: Quota
  /** For so many hours only. */
  raise: boolean
  onClose: () => void
}

function QuotaForm({ owner, quota, raise, onClose }: FormProps) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const form = useForm<QuotaValues>({
    initialValues: quotaValues(raise ? quota.raise?.limits : quota.limits),
  })
  const [hours, setHours] = useState<number | string>(24)
  const lasts = raise ? Number(hours) : null
  // The moment that a raise is counted from, as far as the request beside shows it.
  const [opened] = useState(() => Date.now())
  const wanted = quotaFrom(quota, form.values, lasts, opened)
  const set = useMutation({
    mutationFn: () => setQuota(owner, quotaFrom(quota, form.values, lasts, Date.now())),
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
          {t(raise ? 'quota.text_while' : `quota.text_${owner.kind}`)}
        </Text>
        {set.error && <Trouble error={set.error} />}
        {raise && (
          <NumberInput
            label={t('quota.hours')}
            description={t('quota.hours_help')}
            min={1}
            max={24 * 365}
            value={hours}
            onChange={setHours}
          />
        )}
        <Limits form={form} placeholder={t(raise ? 'quota.as_always' : 'quota.no_limit')} />
        <ShowAs
          command={quotaCommand(owner, limitsFrom(form.values), lasts)}
          request={apiRequest('PUT', `/${owner.kind}s/${owner.name}/quota`, wanted)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common:cancel')}
          </Button>
          <SubmitButton
            label={t('common:save')}
            busy={set.isPending}
            reason={lasts !== null && !(lasts > 0) ? t('quota.lasts_needed') : undefined}
          />
        </Group>
      </Stack>
    </form>
  )
}

interface LimitsProps {
  form: UseFormReturnType<QuotaValues>
  placeholder: string
  readOnly?: boolean
}

/** One field for each resource, and one for each model of GPU that there is or that has a limit. */
function Limits({ form, placeholder, readOnly }: LimitsProps) {
  const { t } = useTranslation('admin')
  const { data } = useQuery(clusterQuery)
  const there = sumsByModel(data?.nodes ?? []).map(({ model }) => model)
  const models = [...new Set([...there, ...Object.keys(form.values.models)])]
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      {QUOTA_FIELDS.map((field) => (
        <NumberInput
          key={field}
          label={t(`quota.${field}`)}
          description={t(`quota.help.${field}`)}
          placeholder={placeholder}
          readOnly={readOnly}
          hideControls={readOnly}
          min={0}
          allowDecimal={field === 'cpus' || field.endsWith('Gib')}
          clampBehavior="none"
          {...form.getInputProps(field)}
        />
      ))}
      {models.map((model) => (
        <NumberInput
          key={model}
          label={t('quota.gpus_of', { model })}
          description={t('quota.help.gpus_of')}
          placeholder={placeholder}
          readOnly={readOnly}
          hideControls={readOnly}
          min={0}
          allowDecimal={false}
          clampBehavior="none"
          value={form.values.models[model] ?? ''}
          onChange={(most) => form.setFieldValue('models', { ...form.values.models, [model]: most })}
        />
      ))}
    </SimpleGrid>
  )
}
