import { Stack } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { adminSectionsOf } from '../../app/navigation'
import { meQuery } from '../../api/session'
import { PageTitle } from '../../ui/page-title'
import { SectionTabs } from '../../ui/section-tabs'
import { never } from '../../util/never'
import { type AdminSection, paths } from '../../util/path-builder'
import { AnnouncementsSection } from './announcements'
import { AuditSection } from './audit'
import { GroupsSection } from './groups'
import { HealthSection } from './health'
import { AllImagesSection } from './images'
import { AllInstancesSection } from './instances'
import { AllJobsSection } from './jobs'
import { NodesSection } from './nodes'
import { EffectiveSettingsSection } from './settings'
import { UsageSection } from './usage'
import { UsersSection } from './users'

export function AdminPage({ section }: { section: AdminSection }) {
  const { t } = useTranslation('admin')
  const { data: me } = useSuspenseQuery(meQuery)
  const navigate = useNavigate()
  return (
    <Stack>
      <PageTitle tab={`${t(`section.${section}`)} · ${t('title')}`}>{t('title')}</PageTitle>
      <SectionTabs
        label={t('sections')}
        sections={adminSectionsOf(me).map((value) => ({ value, label: t(`section.${value}`) }))}
        value={section}
        onChoose={(chosen) => void navigate({ to: paths.admin(chosen) })}
      >
        <SectionContent section={section} />
      </SectionTabs>
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
    case 'jobs':
      return <AllJobsSection />
    case 'images':
      return <AllImagesSection />
    case 'usage':
      return <UsageSection />
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
