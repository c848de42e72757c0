import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { IconPlus } from '../../ui/icons'
import { paths } from '../../util/path-builder'

export function CreateButton() {
  const { t } = useTranslation('instances')
  return (
    <Button component={Link} to={paths.newInstance()} leftSection={<IconPlus size={18} />}>
      {t('create')}
    </Button>
  )
}
