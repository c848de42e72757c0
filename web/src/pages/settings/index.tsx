import { Stack } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { PageTitle } from '../../ui/page-title'
import { SectionTabs } from '../../ui/section-tabs'
import { never } from '../../util/never'
import { paths, SETTINGS_SECTIONS, type SettingsSection } from '../../util/path-builder'
import { ActivitySection } from './activity'
import { AppearanceSection } from './appearance'
import { ProfileSection } from './profile'
import { SecretsSection } from './secrets'
import { SecuritySection } from './security'
import { SshKeysSection } from './ssh-keys'
import { TokensSection } from './tokens'

/** What belongs to one's own account. */
export function SettingsPage({ section }: { section: SettingsSection }) {
  const { t } = useTranslation('settings')
  const navigate = useNavigate()
  return (
    <Stack maw={960}>
      <PageTitle tab={`${t(`section.${section}`)} · ${t('title')}`}>{t('title')}</PageTitle>
      <SectionTabs
        label={t('sections')}
        sections={SETTINGS_SECTIONS.map((value) => ({ value, label: t(`section.${value}`) }))}
        value={section}
        onChoose={(chosen) => void navigate({ to: paths.settings(chosen) })}
      >
        <SectionContent section={section} />
      </SectionTabs>
    </Stack>
  )
}

function SectionContent({ section }: { section: SettingsSection }) {
  switch (section) {
    case 'profile':
      return <ProfileSection />
    case 'appearance':
      return <AppearanceSection />
    case 'ssh-keys':
      return <SshKeysSection />
    case 'tokens':
      return <TokensSection />
    case 'secrets':
      return <SecretsSection />
    case 'security':
      return <SecuritySection />
    case 'activity':
      return <ActivitySection />
    default:
      return never(section)
  }
}
