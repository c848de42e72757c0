import { Badge, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { type SortSearch, useSort } from '../../app/use-sort'
import { meQuery } from '../../api/session'
import { imagesQuery } from '../../api/site'
import type { Image } from '../../api/types'
import { CopyField } from '../../ui/copy'
import { EmptyState } from '../../ui/empty-state'
import { IconImages } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { formatBytes } from '../../util/format'
import { IMAGE_GROUPS, type ImageGroup } from '../../util/path-builder'
import { ImageActions } from './actions'
import { ImageStanding } from './state'

export interface ImagesSearch extends SortSearch {
  group?: ImageGroup
}

function groupOf(image: Image, me: string): ImageGroup {
  if (!image.saved || image.saved.platform) return 'platform'
  return image.saved.user === me ? 'mine' : 'others'
}

export function ImagesPage() {
  const { t } = useTranslation('images')
  const navigate = useNavigate()
  const { group = 'mine' } = useSearch({ strict: false })
  const { data: me } = useSuspenseQuery(meQuery)
  const { data, error, isPending, refetch } = useQuery(imagesQuery)
  const shown = data?.filter((image) => groupOf(image, me.name) === group)
  return (
    <Stack>
      <PageTitle>{t('title')}</PageTitle>
      <Group>
        <SegmentedControl<ImageGroup>
          aria-label={t('group')}
          data={IMAGE_GROUPS.map((value) => ({ value, label: t(`tab.${value}`) }))}
          value={group}
          onChange={(value) =>
            void navigate({ to: '.', search: (before) => ({ ...before, group: value }), replace: true })
          }
        />
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {shown?.length === 0 && (
        <EmptyState
          icon={<IconImages size={48} stroke={1.25} />}
          title={t(`none.${group}`)}
          text={t('none_text')}
          action={null}
        />
      )}
      {shown && shown.length > 0 && <ImageRecords images={shown} group={group} />}
    </Stack>
  )
}

function ImageRecords({ images, group }: { images: Image[]; group: ImageGroup }) {
  const { t } = useTranslation('images')
  const sorting = useSort()
  const saved = group !== 'platform'
  return (
    <Records
      label={t('title')}
      rows={images}
      rowId={(image) => image.saved?.id ?? image.reference}
      heading="image"
      {...sorting}
      columns={[
        {
          id: 'image',
          header: t('column.image'),
          cell: (image) => <ImageName image={image} />,
          sortBy: (image) => image.reference,
        },
        ...(saved
          ? [
              {
                id: 'state',
                header: t('column.state'),
                cell: (image: Image) => <ImageStanding image={image} />,
              },
              {
                id: 'from',
                header: t('column.from'),
                cell: (image: Image) => <Text size="sm">{image.saved?.instance}</Text>,
              },
              {
                id: 'share',
                header: t('column.share'),
                cell: (image: Image) => (
                  <Text size="sm">{image.saved && t(`share.${image.saved.share}`)}</Text>
                ),
              },
            ]
          : []),
        {
          id: 'size',
          header: t('column.size'),
          cell: (image) => <ImageSize image={image} />,
          sortBy: (image) => image.size_bytes,
        },
        {
          id: 'made',
          header: t('column.made'),
          cell: (image) => <TimeAgo at={image.created_at} />,
          sortBy: (image) => image.created_at,
        },
      ]}
      actions={(image) => <ImageActions image={image} />}
    />
  )
}

function ImageName({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  const { saved } = image
  return (
    <Stack gap={2} align="flex-start">
      {saved && <Text fw={600} className="breakable">{`${saved.name}:${saved.tag}`}</Text>}
      <CopyField text={image.reference} label={t('copy')} />
      {saved?.message && (
        <Text size="sm" className="breakable">
          {saved.message}
        </Text>
      )}
      {image.default && (
        <Badge size="sm" variant="light" tt="none">
          {t('default')}
        </Badge>
      )}
    </Stack>
  )
}

function ImageSize({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  return (
    <Stack gap={0}>
      <Text size="sm" className="numbers">
        {formatBytes(image.size_bytes)}
      </Text>
      {image.saved && (
        <Text size="xs" c="dimmed" className="numbers">
          {t('added', { added: formatBytes(image.saved.added_bytes) })}
        </Text>
      )}
    </Stack>
  )
}
