import { Stack, Tabs } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { PageTitle } from '../../ui/page-title'
import { never } from '../../util/never'
import { isSettingsSection, paths, SETTINGS_SECTIONS, type SettingsSection } from '../../util/path-builder'
import { ActivitySection } from './activity'
import { AppearanceSection } from './appearance'
import { ProfileSection } from './profile'
import { SecuritySection } from './security'
import { SshKeysSection } from './ssh-keys'
import { TokensSection } from './tokens'

/** What belongs to one's own account. */
export function SettingsPage({ section }: { section: SettingsSection }) {
  const { t } = useTranslation('settings')
  const navigate = useNavigate()
  const choose = (chosen: string | null) => {
    if (chosen && isSettingsSection(chosen)) void navigate({ to: paths.settings(chosen) })
  }
  return (
    <Stack maw={960}>
      <PageTitle tab={`${t(`section.${section}`)} · ${t('title')}`}>{t('title')}</PageTitle>
      <Tabs value={section} onChange={choose} activateTabWithKeyboard={false} keepMounted={false}>
        <Tabs.List aria-label={t('sections')} mb="md" className="scrolling-tabs">
          {SETTINGS_SECTIONS.map((value) => (
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
    case 'security':
      return <SecuritySection />
    case 'activity':
      return <ActivitySection />
    default:
      return never(section)
  }
}
