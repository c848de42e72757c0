import { Alert, Box, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import type { AppAct, AppName } from '../../../api/apps'
import { isPending, preparingText } from '../../../api/preparing'
import type { App } from '../../../api/types'
import { IconAlert, IconCheck, IconDownload, IconLoader, IconPlay, IconStop } from '../../../ui/icons'
import { LogView } from '../../../ui/log-view'
import { ReasonedButton } from '../../../ui/reasoned-button'
import { never } from '../../../util/never'
import type { UsedApp } from './use-app'

interface Props {
  name: AppName
  used: UsedApp
}

/** In place of an app that is not there yet: how far it is, what it wrote, or why it cannot be had and what to do. */
export function AppStart({ name, used: { app, error, busy, act, look } }: Props) {
  if (error) return <Trouble error={error} onRetry={look} />
  if (app === undefined) return <Skeleton className="after-a-moment" height={160} />
  return (
    <Stack gap="md" flex={1} mih={0} maw={760} w="100%">
      <Standing name={name} app={app} busy={busy} act={act} />
      <Steps app={app} />
      {app.log !== '' && <Written name={name} text={app.log} />}
    </Stack>
  )
}

interface StandingProps {
  name: AppName
  app: App
  busy: boolean
  act: (act: AppAct) => void
}

function Standing({ name, app, busy, act }: StandingProps) {
  const { t } = useTranslation('apps')
  const { t: common } = useTranslation()
  const called = t(`app.${name}`)
  const button = (what: AppAct, text: string) => (
    <Group>
      <ReasonedButton
        label={text}
        busy={busy}
        leftSection={what === 'install' ? <IconDownload size={18} /> : <IconPlay size={18} />}
        onClick={() => act(what)}
      />
    </Group>
  )
  switch (app.state) {
    case 'ready':
    case 'starting':
      return <Head title={t('starting.title', { app: called })} text={t('starting.text')} />
    case 'installing':
      return (
        <Stack gap="sm">
          <Head title={t('installing.title', { app: called })} text={t('installing.text')} />
          <Group>
            <ReasonedButton
              variant="default"
              label={t('install_cancel')}
              busy={busy}
              leftSection={<IconStop size={18} />}
              onClick={() => act('stop')}
            />
          </Group>
        </Stack>
      )
    case 'stopped':
      return (
        <Stack gap="sm">
          <Head title={t('stopped.title', { app: called })} />
          {button('start', t('start', { app: called }))}
        </Stack>
      )
    case 'installable':
      return (
        <Stack gap="sm">
          <Head title={t('installable.title', { app: called })} text={t('installable.text')} />
          {button('install', t('install', { app: called }))}
        </Stack>
      )
    case 'absent':
      if (app.preparing && isPending(app.preparing)) {
        return (
          <Stack gap={0}>
            <Head title={t('not_ready.title', { app: called })} text={preparingText(app.preparing, common)} />
            <Text c="dimmed">{t('starting.text')}</Text>
          </Stack>
        )
      }
      return <Problem title={t('absent.title', { app: called })} name={name} app={app} />
    case 'failed':
      return (
        <Stack gap="sm">
          <Problem title={t('failed.title', { app: called })} name={name} app={app} />
          {hasFailedToInstall(app)
            ? button('install', t('install_again', { app: called }))
            : button('start', t('again', { app: called }))}
        </Stack>
      )
    default:
      return never(app.state)
  }
}

function hasFailedToInstall({ steps }: App): boolean {
  return steps.some(({ step, done }) => step === 'install' && !done)
}

function Head({ title, text }: { title: string; text?: string }) {
  return (
    <Box role="status">
      <Title order={2} size="h4">
        {title}
      </Title>
      {text && <Text c="dimmed">{text}</Text>}
    </Box>
  )
}

function Problem({ title, name, app: { problem, preparing } }: { title: string; name: AppName; app: App }) {
  const { t } = useTranslation('apps')
  const { t: common } = useTranslation()
  // Codes that a newer instance knows come with words of their own.
  const say = (part: 'why' | 'hint', own: string) =>
    t([`problem.${problem?.code}_${name}.${part}`, `problem.${problem?.code}.${part}`], { defaultValue: own })
  const why = preparing ? preparingText(preparing, common) : problem && say('why', problem.message)
  const hint = problem && say('hint', problem.hint)
  return (
    <Alert role="alert" color="red" variant="outline" icon={<IconAlert />} title={title}>
      {why && <Text size="sm">{why}</Text>}
      {hint && <Text size="sm">{hint}</Text>}
    </Alert>
  )
}

function Steps({ app }: { app: App }) {
  const { t } = useTranslation('apps')
  if (app.steps.length === 0) return null
  return (
    <Stack component="ol" gap={4} m={0} p={0} style={{ listStyle: 'none' }} aria-label={t('steps')}>
      {app.steps.map(({ step, seconds, done }) => (
        <Group component="li" key={step} gap="xs" wrap="nowrap">
          <StepMark done={done} failed={app.state === 'failed'} />
          <Text size="sm">{t(`step.${step}`, { defaultValue: step })}</Text>
          <Text size="sm" c="dimmed" className="numbers">
            {t('seconds', { seconds: seconds.toFixed(1) })}
          </Text>
        </Group>
      ))}
    </Stack>
  )
}

function StepMark({ done, failed }: { done: boolean; failed: boolean }) {
  if (done) return <IconCheck size={18} color="var(--mantine-color-green-light-color)" aria-hidden />
  if (failed) return <IconAlert size={18} color="var(--mantine-color-error)" aria-hidden />
  return <IconLoader size={18} className="turning" aria-hidden />
}

function Written({ name, text }: { name: AppName; text: string }) {
  const { t } = useTranslation('apps')
  return (
    <Box h={260} mih={120} display="flex" style={{ flexDirection: 'column' }}>
      <LogView label={t('log', { app: t(`app.${name}`) })} pieces={[{ text }]} wrap />
    </Box>
  )
}
