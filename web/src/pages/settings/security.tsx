import { Box } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { PasswordForm } from '../../app/password-dialog'
import { Section } from '../../ui/section'

export function SecuritySection() {
  const { t } = useTranslation('session')
  return (
    <Section title={t('change_password.title')}>
      <Box maw={440}>
        <PasswordForm />
      </Box>
    </Section>
  )
}
