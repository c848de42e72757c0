import { Group, Skeleton, Stack, Tabs } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { instanceQuery } from '../../../api/instances'
import type { Instance } from '../../../api/types'
import { PageTitle } from '../../../ui/page-title'
import { never } from '../../../util/never'
import { INSTANCE_TABS, type InstanceTab, isInstanceTab, paths } from '../../../util/path-builder'
import { InstanceActions } from '../actions'
import { InstanceState } from '../state'
import { LogsTab } from './logs'
import { OverviewTab } from './overview'
import { TerminalTab } from './terminal'

interface Props {
  name: string
  tab: InstanceTab
  /** Which of the instance's terminals. */
  terminal: string
}

export function InstancePage({ name, tab, terminal }: Props) {
  const { t } = useTranslation('instances')
  const { data: instance, error, isPending, refetch } = useQuery(instanceQuery(name))
  const title = instance?.name ?? name
  return (
    // The terminal and the log fill the window below the header.
    <Stack
      gap="sm"
      h={tab === 'overview' ? undefined : 'calc(100dvh - 56px - 2 * var(--app-shell-padding))'}
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
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <Skeleton className="after-a-moment" height={240} />}
      {instance && (
        <InstanceTabs name={name} tab={tab} label={t('tab.label', { name: title })}>
          <TabContent instance={instance} tab={tab} terminal={terminal} />
        </InstanceTabs>
      )}
    </Stack>
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
  const choose = (chosen: string | null) => {
    if (chosen && isInstanceTab(chosen)) void navigate({ to: paths.instance(name, chosen) })
  }
  return (
    <Tabs
      value={tab}
      onChange={choose}
      activateTabWithKeyboard={false}
      display="flex"
      flex={1}
      mih={0}
      style={{ flexDirection: 'column' }}
    >
      <Tabs.List aria-label={label} mb="sm">
        {INSTANCE_TABS.map((value) => (
          <Tabs.Tab key={value} value={value}>
            {t(`tab.${value}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={tab} flex={1} mih={0} display="flex" style={{ flexDirection: 'column' }}>
        {children}
      </Tabs.Panel>
    </Tabs>
  )
}

function TabContent({ instance, tab, terminal }: { instance: Instance; tab: InstanceTab; terminal: string }) {
  switch (tab) {
    case 'overview':
      return <OverviewTab instance={instance} />
    case 'terminal':
      return <TerminalTab instance={instance} terminal={terminal} />
    case 'logs':
      return <LogsTab instance={instance} />
    default:
      return never(tab)
  }
}
