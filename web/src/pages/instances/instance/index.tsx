import { Anchor, Group, Skeleton, Stack, Tabs, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { PreparingBanner } from '../../../app/preparing-banner'
import { Trouble } from '../../../app/trouble'
import { instanceQuery } from '../../../api/instances'
import { jobQuery } from '../../../api/jobs'
import type { Instance } from '../../../api/types'
import { PageTitle } from '../../../ui/page-title'
import { useShownTab } from '../../../ui/use-shown-tab'
import { later } from '../../../util/later'
import { never } from '../../../util/never'
import {
  type FramedApp,
  INSTANCE_TABS,
  type InstanceTab,
  isFramedApp,
  isInstanceTab,
  paths,
} from '../../../util/path-builder'
import { InstanceActions } from '../actions'
import { InstanceState } from '../state'
import { DesktopTab } from './desktop'
import { FramedAppView } from './framed-app'
import classes from './index.module.css'
import { LogsTab } from './logs'
import { OverviewTab } from './overview'
import { PortsTab } from './ports'
import { RunningSaves } from './saves'
import { TensorboardTab } from './tensorboard'
import { TerminalTab } from './terminal'

// What brings more than the page itself, and is looked at now and then.
const EventsTab = later(async () => ({ default: (await import('./events')).EventsTab }))
const MetricsTab = later(async () => ({ default: (await import('./metrics')).MetricsTab }))
const SpecTab = later(async () => ({ default: (await import('./spec')).SpecTab }))
const SshTab = later(async () => ({ default: (await import('./ssh')).SshTab }))

interface Props {
  name: string
  tab: InstanceTab
  /** Which of the instance's terminals. */
  terminal: string
  /** What TensorBoard shows. */
  folder?: string
}

/** Tabs that are as long as what they say; the others fill the window below the header. */
const LONG: readonly InstanceTab[] = ['overview', 'ssh', 'ports', 'metrics', 'events', 'spec']

export function InstancePage({ name, tab, terminal, folder }: Props) {
  const { t } = useTranslation('instances')
  const { data: instance, error, isPending, refetch } = useQuery(instanceQuery(name))
  const title = instance?.name ?? name
  return (
    <Stack
      gap="sm"
      h={LONG.includes(tab) ? undefined : 'calc(100dvh - 56px - 2 * var(--app-shell-padding))'}
      mih={420}
    >
      <Group justify="space-between" gap="sm">
        <Group gap="sm">
          <PageTitle tab={instance ? `${t(`state.${instance.status.state}`)} · ${title}` : title}>
            {title}
          </PageTitle>
          {instance && (
            <div aria-live="polite">
              <InstanceState instance={instance} inLine />
            </div>
          )}
        </Group>
        {instance && <PageActions instance={instance} />}
      </Group>
      {instance?.job && <TaskOf job={instance.job} />}
      {instance && <RunningSaves instance={instance} />}
      <PreparingBanner of={['base', 'tools']} />
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <Skeleton className="after-a-moment" height={240} />}
      {instance && (
        <InstanceTabs name={name} tab={tab} label={t('tab.label', { name: title })}>
          <FramedPanels key={instance.id} instance={instance} tab={tab} folder={folder} />
          {!isFramedApp(tab) && (
            <Panel tab={tab}>
              <Suspense fallback={<Skeleton className="after-a-moment" height={240} />}>
                <TabContent instance={instance} tab={tab} terminal={terminal} />
              </Suspense>
            </Panel>
          )}
        </InstanceTabs>
      )}
    </Stack>
  )
}

/** The job that the instance is a task of: what is missing here is done there. */
function TaskOf({ job }: { job: string }) {
  const { t } = useTranslation('instances')
  const { data } = useQuery(jobQuery(job))
  return (
    <Group gap={6}>
      <Text size="sm">{t('task_of')}</Text>
      <Anchor component={Link} to={paths.job(job)} size="sm" fw={600} className="breakable">
        {data?.name ?? job}
      </Anchor>
    </Group>
  )
}

function PageActions({ instance }: { instance: Instance }) {
  const navigate = useNavigate()
  const wide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  return (
    <InstanceActions
      instance={instance}
      compact={!wide}
      onDeleted={() => void navigate({ to: paths.instances() })}
    />
  )
}

interface TabsProps {
  name: string
  tab: InstanceTab
  label: string
  children: ReactNode
}

function InstanceTabs({ name, tab, label, children }: TabsProps) {
  const { t } = useTranslation('instances')
  const navigate = useNavigate()
  const list = useShownTab(tab)
  const choose = (chosen: string | null) => {
    if (chosen && isInstanceTab(chosen)) void navigate({ to: paths.instance(name, chosen) })
  }
  return (
    <Tabs
      value={tab}
      onChange={choose}
      activateTabWithKeyboard={false}
      // A framed page that were taken off the screen would begin anew.
      keepMountedMode="display-none"
      display="flex"
      flex={1}
      mih={0}
      style={{ flexDirection: 'column', position: 'relative' }}
    >
      <Tabs.List ref={list} aria-label={label} mb="sm" className={classes.list}>
        {INSTANCE_TABS.map((value) => (
          <Tabs.Tab key={value} value={value} className={classes.tab}>
            {t(`tab.${value}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {children}
    </Tabs>
  )
}

function Panel({ tab, framed, children }: { tab: InstanceTab; framed?: boolean; children: ReactNode }) {
  return (
    <Tabs.Panel value={tab} className={classes.panel} data-framed={framed || undefined}>
      {children}
    </Tabs.Panel>
  )
}

interface FramedPanelsProps {
  instance: Instance
  tab: InstanceTab
  folder?: string
}

/** Every framed app that was looked at stays on the page, so that coming back to it finds it as it was. */
function FramedPanels({ instance, tab, folder }: FramedPanelsProps) {
  const [seen, setSeen] = useState<readonly FramedApp[]>([])
  const [board, setBoard] = useState(folder)
  if (isFramedApp(tab) && !seen.includes(tab)) setSeen([...seen, tab])
  if (tab === 'tensorboard' && folder !== undefined && folder !== board) setBoard(folder)
  return seen.map((app) => (
    <Panel key={app} tab={app} framed>
      {app === 'tensorboard' ? (
        <TensorboardTab instance={instance} folder={board} />
      ) : (
        <FramedAppView instance={instance} app={app} />
      )}
    </Panel>
  ))
}

interface TabContentProps {
  instance: Instance
  tab: Exclude<InstanceTab, FramedApp>
  terminal: string
}

function TabContent({ instance, tab, terminal }: TabContentProps) {
  switch (tab) {
    case 'overview':
      return <OverviewTab instance={instance} />
    case 'terminal':
      return <TerminalTab instance={instance} terminal={terminal} />
    case 'desktop':
      return <DesktopTab instance={instance} />
    case 'ssh':
      return <SshTab instance={instance} />
    case 'ports':
      return <PortsTab instance={instance} />
    case 'logs':
      return <LogsTab instance={instance} />
    case 'metrics':
      return <MetricsTab instance={instance} />
    case 'events':
      return <EventsTab instance={instance} />
    case 'spec':
      return <SpecTab instance={instance} />
    default:
      return never(tab)
  }
}
