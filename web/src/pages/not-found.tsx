import { Button, Stack, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { PageTitle } from '../ui/page-title'
import { paths } from '../util/path-builder'

export function NotFoundPage() {
  const { t } = useTranslation()
  return (
    <Stack align="center" justify="center" ta="center" mih="70dvh" p="md">
      <PageTitle>{t('page_not_found.title')}</PageTitle>
      <Text>{t('page_not_found.text')}</Text>
      <Button component={Link} to={paths.instances()}>
        {t('page_not_found.action')}
      </Button>
    </Stack>
  )
}
