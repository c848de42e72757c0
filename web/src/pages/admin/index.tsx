import { Stack, Tabs } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../../api/session'
import type { Role } from '../../api/types'
import { PageTitle } from '../../ui/page-title'
import { never } from '../../util/never'
import { ADMIN_SECTIONS, type AdminSection, isAdminSection, paths } from '../../util/path-builder'
import { AnnouncementsSection } from './announcements'
import { AuditSection } from './audit'
import { GroupsSection } from './groups'
import { HealthSection } from './health'
import { AllInstancesSection } from './instances'
import { NodesSection } from './nodes'
import { EffectiveSettingsSection } from './settings'
import { UsersSection } from './users'

/** What a leader can see of it; the gateway refuses the rest. */
const FOR_LEADERS: readonly AdminSection[] = ['users', 'instances']

function sectionsFor(role: Role): readonly AdminSection[] {
  return role === 'admin' ? ADMIN_SECTIONS : FOR_LEADERS
}

export function AdminPage({ section }: { section: AdminSection }) {
  const { t } = useTranslation('admin')
  const { data: me } = useSuspenseQuery(meQuery)
  const navigate = useNavigate()
  const choose = (chosen: string | null) => {
    if (chosen && isAdminSection(chosen)) void navigate({ to: paths.admin(chosen) })
  }
  return (
    <Stack>
      <PageTitle tab={`${t(`section.${section}`)} · ${t('title')}`}>{t('title')}</PageTitle>
      <Tabs value={section} onChange={choose} activateTabWithKeyboard={false} keepMounted={false}>
        <Tabs.List aria-label={t('sections')} mb="md" className="scrolling-tabs">
          {sectionsFor(me.role).map((value) => (
            <Tabs.Tab key={value} value={value}>
              {t(`section.${value}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={section}>
          <SectionContent section={section} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  )
}

function SectionContent({ section }: { section: AdminSection }) {
  switch (section) {
    case 'users':
      return <UsersSection />
    case 'groups':
      return <GroupsSection />
    case 'nodes':
      return <NodesSection />
    case 'instances':
      return <AllInstancesSection />
    case 'announcements':
      return <AnnouncementsSection />
    case 'audit':
      return <AuditSection />
    case 'health':
      return <HealthSection />
    case 'settings':
      return <EffectiveSettingsSection />
    default:
      return never(section)
  }
}
