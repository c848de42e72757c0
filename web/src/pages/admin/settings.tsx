import { Badge, Code, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { SiteForm } from '../../app/site-form'
import { Trouble } from '../../app/trouble'
import { settingsQuery, siteQuery } from '../../api/site'
import { LoadingRows } from '../../ui/loading'
import { Records } from '../../ui/records'
import { Section } from '../../ui/section'

/** What is in effect and where it comes from. Changed in `berth.toml` or the environment, then by a restart. */
export function EffectiveSettingsSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(settingsQuery)
  return (
    <Stack>
      <SiteSection />
      <Text c="dimmed">{t('settings.text')}</Text>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={6} height={36} />}
      {data && (
        <Records
          label={t('section.settings')}
          rows={data}
          rowId={(setting) => setting.key}
          heading="key"
          columns={[
            {
              id: 'key',
              header: t('settings.key'),
              cell: (setting) => <Code className="breakable">{setting.key}</Code>,
            },
            {
              id: 'value',
              header: t('settings.value'),
              cell: (setting) => (
                <Text size="sm" className="breakable" c={setting.value ? undefined : 'dimmed'}>
                  {setting.value ?? t('settings.not_set')}
                </Text>
              ),
            },
            {
              id: 'source',
              header: t('settings.source'),
              cell: (setting) => (
                <Badge variant="light" tt="none" color={setting.source === 'default' ? 'gray' : 'blue'}>
                  {setting.variable ?? t(`settings.from_${setting.source}`)}
                </Badge>
              ),
            },
          ]}
        />
      )}
    </Stack>
  )
}

/** What is changed here and now, without a restart. */
function SiteSection() {
  const { t } = useTranslation('admin')
  const { data, error } = useQuery(siteQuery)
  return (
    <Section title={t('site.title')}>
      {error && <Trouble error={error} />}
      {data && <SiteForm key={data.name} site={data} whole />}
    </Section>
  )
}
