import {
  Badge,
  Group,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
  Tooltip,
} from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showDone, showTrouble, Trouble } from '../../app/trouble'
import {
  addAnnouncement,
  announcementsQuery,
  removeAnnouncement,
  rulesQuery,
  setRules,
  textFor,
} from '../../api/notices'
import type { AddAnnouncement, Announcement, Rules } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import { ConfirmDialog } from '../../ui/confirm-dialog'
import { IconTrash } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { Section } from '../../ui/section'
import { ShowAs } from '../../ui/show-as'
import { TimeAgo } from '../../ui/time-ago'
import { SubmitButton } from '../../ui/submit-button'
import { apiRequest } from '../../util/cli-command'

export function AnnouncementsSection() {
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Announcements />
      <RulesEditor />
    </SimpleGrid>
  )
}

function Announcements() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(announcementsQuery('all'))
  return (
    <Section title={t('announcements.title')}>
      <Text size="sm" c="dimmed">
        {t('announcements.text')}
      </Text>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={2} />}
      {data?.length === 0 && <Text size="sm">{t('announcements.none')}</Text>}
      {data?.map((announcement) => (
        <Row key={announcement.id} announcement={announcement} />
      ))}
      <AddForm />
    </Section>
  )
}

function standing({ starts_at, ends_at }: Announcement): 'coming' | 'over' | 'shown' {
  const now = new Date().toISOString()
  if (starts_at > now) return 'coming'
  return ends_at && ends_at <= now ? 'over' : 'shown'
}

function Row({ announcement }: { announcement: Announcement }) {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const [asked, setAsked] = useState(false)
  const remove = useMutation({
    mutationFn: () => removeAnnouncement(announcement.id),
    onError: showTrouble,
    onSettled: () => {
      setAsked(false)
      return cache.invalidateQueries({ queryKey: ['announcements'] })
    },
  })
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <Stack gap={4} flex={1} miw={0}>
        <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
          {textFor(announcement.text)}
        </Text>
        <Group gap="xs">
          <Badge variant="light" tt="none" color={announcement.level === 'warning' ? 'yellow' : 'blue'}>
            {t(`announcements.level_${announcement.level}`)}
          </Badge>
          <Badge variant="light" tt="none" color="gray">
            {t(`announcements.${standing(announcement)}`)}
          </Badge>
          {standing(announcement) === 'coming' && (
            <Group gap={4}>
              <Text size="xs" c="dimmed">
                {t('announcements.from')}
              </Text>
              <TimeAgo at={announcement.starts_at} />
            </Group>
          )}
          {announcement.ends_at && (
            <Group gap={4}>
              <Text size="xs" c="dimmed">
                {t('announcements.until')}
              </Text>
              <TimeAgo at={announcement.ends_at} />
            </Group>
          )}
        </Group>
      </Stack>
      <ActionButton
        compact
        danger
        label={t('announcements.remove')}
        icon={IconTrash}
        busy={remove.isPending}
        onClick={() => setAsked(true)}
      />
      <ConfirmDialog
        opened={asked}
        title={t('announcements.remove_title')}
        confirm={t('announcements.remove_confirm')}
        busy={remove.isPending}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
          {textFor(announcement.text)}
        </Text>
        <Text size="sm">{t('announcements.remove_text')}</Text>
      </ConfirmDialog>
    </Group>
  )
}

interface Values {
  level: AddAnnouncement['level']
  chinese: string
  english: string
  startsAt: string
  endsAt: string
}

function announcementFrom({ level, chinese, english, startsAt, endsAt }: Values): AddAnnouncement {
  return {
    level,
    text: { chinese, english },
    ...(startsAt !== '' && { starts_at: new Date(startsAt).toISOString() }),
    ...(endsAt !== '' && { ends_at: new Date(endsAt).toISOString() }),
  }
}

function AddForm() {
  const { t } = useTranslation('admin')
  const cache = useQueryClient()
  const form = useForm<Values>({
    initialValues: { level: 'info', chinese: '', english: '', startsAt: '', endsAt: '' },
    validate: {
      chinese: (text, { english }) =>
        text.trim() === '' && english.trim() === '' ? t('announcements.text_needed') : null,
    },
  })
  const add = useMutation({
    mutationFn: (values: Values) => addAnnouncement(announcementFrom(values)),
    onSuccess: () => {
      showDone(t(form.values.startsAt === '' ? 'announcements.added' : 'announcements.added_later'))
      form.reset()
    },
    onSettled: () => cache.invalidateQueries({ queryKey: ['announcements'] }),
  })
  return (
    <form noValidate onSubmit={form.onSubmit((values) => add.mutate(values))}>
      <Stack gap="sm">
        {add.error && <Trouble error={add.error} />}
        <Textarea
          label={t('announcements.chinese')}
          description={t('announcements.chinese_help')}
          autosize
          minRows={2}
          {...form.getInputProps('chinese')}
        />
        <Textarea
          label={t('announcements.english')}
          description={t('announcements.english_help')}
          autosize
          minRows={2}
          {...form.getInputProps('english')}
        />
        <Group align="flex-end">
          <Tooltip label={t('announcements.level_help')} multiline maw={320}>
            <SegmentedControl<Values['level']>
              aria-label={t('announcements.level')}
              data={[
                { value: 'info', label: t('announcements.level_info') },
                { value: 'warning', label: t('announcements.level_warning') },
              ]}
              {...form.getInputProps('level')}
            />
          </Tooltip>
          <TextInput
            type="datetime-local"
            label={t('announcements.starts')}
            description={t('announcements.starts_help')}
            {...form.getInputProps('startsAt')}
          />
          <TextInput
            type="datetime-local"
            label={t('announcements.ends')}
            description={t('announcements.ends_help')}
            {...form.getInputProps('endsAt')}
          />
          <SubmitButton label={t('announcements.add')} busy={add.isPending} />
        </Group>
        <ShowAs request={apiRequest('POST', '/announcements', announcementFrom(form.values))} />
      </Stack>
    </form>
  )
}

function RulesEditor() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(rulesQuery)
  return (
    <Section title={t('rules.title')}>
      <Text size="sm" c="dimmed">
        {t('rules.text')}
      </Text>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={2} />}
      {data && <RulesForm key={data.version} rules={data} />}
    </Section>
  )
}

function RulesForm({ rules }: { rules: Rules }) {
  const { t } = useTranslation(['admin', 'common'])
  const cache = useQueryClient()
  const { chinese = '', english = '' } = rules.text
  const form = useForm({ initialValues: { chinese, english } })
  const set = useMutation({
    mutationFn: setRules,
    onSuccess: (changed) => {
      cache.setQueryData(rulesQuery.queryKey, changed)
      showDone(t('rules.saved'))
    },
  })
  return (
    <form noValidate onSubmit={form.onSubmit((values) => set.mutate(values))}>
      <Stack gap="sm">
        {set.error && <Trouble error={set.error} />}
        <Textarea
          label={t('announcements.chinese')}
          description={t('announcements.chinese_help')}
          autosize
          minRows={5}
          {...form.getInputProps('chinese')}
        />
        <Textarea
          label={t('announcements.english')}
          description={t('announcements.english_help')}
          autosize
          minRows={5}
          {...form.getInputProps('english')}
        />
        <ShowAs request={apiRequest('PUT', '/rules', form.values)} />
        <Group justify="flex-end">
          <SubmitButton
            label={t('common:save')}
            busy={set.isPending}
            reason={form.isDirty() ? undefined : t('common:unchanged')}
          />
        </Group>
      </Stack>
    </form>
  )
}
