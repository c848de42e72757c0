import { Button, Group, SimpleGrid } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { useClusters } from '../../../app/place-select'
import type { Instance } from '../../../api/types'
import { specOf } from '../../../forms/create-instance'
import { writeInstance } from '../../../forms/instance-file'
import { CopyField } from '../../../ui/copy'
import { IconClone, IconDownload } from '../../../ui/icons'
import { Section } from '../../../ui/section'
import { apiRequest, createCommand } from '../../../util/cli-command'
import { paths } from '../../../util/path-builder'
import { saveFile } from '../../../util/save-file'

/** What it was made of, for making another. */
export function SpecTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const [first] = useClusters()
  const spec = specOf(instance, first)
  const text = writeInstance(spec)
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Section title={t('spec.file')}>
        <CopyField block text={text} label={t('spec.copy')} />
        <Group gap="xs">
          <Button component={Link} to={paths.cloneOf(instance.id)} leftSection={<IconClone size={18} />}>
            {t('action.clone')}
          </Button>
          <Button
            variant="default"
            leftSection={<IconDownload size={18} />}
            onClick={() => saveFile(`${instance.slug}.yaml`, text, 'application/yaml')}
          >
            {t('spec.download')}
          </Button>
        </Group>
      </Section>
      <Section title={t('spec.again')}>
        <CopyField block text={createCommand(spec)} />
        <CopyField block text={apiRequest('POST', '/instances', spec)} />
      </Section>
    </SimpleGrid>
  )
}
