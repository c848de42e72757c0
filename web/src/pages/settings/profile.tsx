import { useSuspenseQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../../api/session'
import { CopyField } from '../../ui/copy'
import { Facts } from '../../ui/facts'
import { Section } from '../../ui/section'

export function ProfileSection() {
  const { t } = useTranslation(['settings', 'admin'])
  const { data: me } = useSuspenseQuery(meQuery)
  return (
    <Section title={t('profile.title')}>
      <Facts
        facts={[
          [t('profile.name'), <CopyField key="name" text={me.name} />],
          [t('profile.role'), t(`admin:role.${me.role}`)],
          [t('profile.group'), me.group],
        ]}
      />
    </Section>
  )
}
