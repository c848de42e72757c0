import { Button, Group, SimpleGrid } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import type { Instance } from '../../../api/types'
import { specOf } from '../../../forms/create-instance'
import { CopyField } from '../../../ui/copy'
import { IconClone, IconDownload } from '../../../ui/icons'
import { Section } from '../../../ui/section'
import { createCommand, createRequest } from '../../../util/cli-command'
import { originForPrograms } from '../../../util/own-address'
import { paths } from '../../../util/path-builder'
import { saveFile } from '../../../util/save-file'

/** What it was made of, for making another. */
export function SpecTab({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const spec = specOf(instance)
  const text = JSON.stringify(spec, null, 2)
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Section title={t('spec.json')}>
        <CopyField block text={text} label={t('spec.copy')} />
        <Group gap="xs">
          <Button component={Link} to={paths.cloneOf(instance.id)} leftSection={<IconClone size={18} />}>
            {t('spec.clone')}
          </Button>
          <Button
            variant="default"
            leftSection={<IconDownload size={18} />}
            onClick={() => saveFile(`${instance.slug}.json`, text, 'application/json')}
          >
            {t('spec.download')}
          </Button>
        </Group>
      </Section>
      <Section title={t('spec.again')}>
        <CopyField block text={createCommand(spec)} />
        <CopyField block text={createRequest(originForPrograms(window.location), spec)} />
      </Section>
    </SimpleGrid>
  )
}
