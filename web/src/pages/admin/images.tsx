import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { imagesQuery } from '../../api/site'
import type { Image } from '../../api/types'
import { LoadingRows } from '../../ui/loading'
import { Section } from '../../ui/section'
import { ImageRecords } from '../images'
import { CollectSection } from './collect'

/** What stands on the platform's list, and what users propose for it. */
export function AllImagesSection() {
  const { t } = useTranslation('admin')
  const { data, error, isPending, refetch } = useQuery(imagesQuery)
  const lists: [key: 'proposed' | 'platform' | 'saved', images: Image[]][] = [
    ['proposed', (data ?? []).filter(({ saved }) => saved?.proposed && !saved.platform)],
    ['platform', (data ?? []).filter(({ saved }) => !saved || saved.platform)],
    ['saved', (data ?? []).filter(({ saved }) => saved && !saved.proposed && !saved.platform)],
  ]
  return (
    <Stack>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {data &&
        lists.map(([key, images]) => (
          <Section key={key} title={t(`all_images.${key}`)}>
            {images.length === 0 ? (
              <Text size="sm" c="dimmed">
                {t(`all_images.no_${key}`)}
              </Text>
            ) : (
              <ImageRecords images={images} label={t(`all_images.${key}`)} />
            )}
          </Section>
        ))}
      <CollectSection />
    </Stack>
  )
}
