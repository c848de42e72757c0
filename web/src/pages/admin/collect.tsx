import { Group, List, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { collectImages } from '../../api/images'
import type { CollectedImages } from '../../api/types'
import { ReasonedButton } from '../../ui/reasoned-button'
import { Section } from '../../ui/section'
import { ShowAs } from '../../ui/show-as'
import { apiRequest } from '../../util/cli-command'
import { formatBytes } from '../../util/format'

/** Files that no image needs any more: first what there is of them, then away with it. */
export function CollectSection() {
  const { t } = useTranslation('admin')
  const collect = useMutation({ mutationFn: collectImages })
  const { data } = collect
  const looked = data !== undefined && collect.variables === true
  const nothing = data !== undefined && data.blobs === 0 && data.images.length === 0
  return (
    <Section title={t('collect.title')}>
      <Text size="sm">{t('collect.text')}</Text>
      {collect.error && <Trouble error={collect.error} />}
      {data && <Found collected={data} looked={looked} />}
      <Group gap="xs">
        <ReasonedButton
          variant="default"
          label={t('collect.look')}
          busy={collect.isPending && collect.variables}
          onClick={() => collect.mutate(true)}
        />
        <ReasonedButton
          label={t('collect.remove')}
          busy={collect.isPending && !collect.variables}
          reason={!looked ? t('collect.look_first') : nothing ? t('collect.nothing') : undefined}
          onClick={() => collect.mutate(false)}
        />
      </Group>
      <ShowAs request={apiRequest('POST', '/images/collect', { dry_run: true })} />
    </Section>
  )
}

function Found({ collected, looked }: { collected: CollectedImages; looked: boolean }) {
  const { t } = useTranslation('admin')
  const { blobs, blob_bytes, images, image_bytes, own_registry } = collected
  return (
    <Stack gap={4} role="status">
      <Text size="sm" fw={600}>
        {t(looked ? 'collect.would_go' : 'collect.gone')}
      </Text>
      <List size="sm">
        <List.Item>
          {own_registry
            ? t('collect.blobs', { count: blobs, size: formatBytes(blob_bytes) })
            : t('collect.foreign')}
        </List.Item>
        <List.Item>{t('collect.images', { count: images.length, size: formatBytes(image_bytes) })}</List.Item>
      </List>
    </Stack>
  )
}
