import { Badge, Button, Group, SegmentedControl, Stack, Text, TextInput } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../app/trouble'
import { type SortSearch, useSort } from '../../app/use-sort'
import { useTyped } from '../../app/use-typed'
import { meQuery } from '../../api/session'
import { imagesQuery } from '../../api/site'
import type { Image } from '../../api/types'
import { CopyField } from '../../ui/copy'
import { EmptyState } from '../../ui/empty-state'
import { IconImages, IconSearch } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { type RecordColumn, Records } from '../../ui/records'
import { TimeAgo } from '../../ui/time-ago'
import { formatBytes } from '../../util/format'
import { IMAGE_GROUPS, type ImageGroup, paths } from '../../util/path-builder'
import { ImageActions } from './actions'
import { ImageStanding } from './state'

export interface ImagesSearch extends SortSearch {
  group?: ImageGroup
  find?: string
}

/** What is nobody's business but its user's is on no list here, whoever oversees it. */
function groupOf({ saved }: Image, me: string): ImageGroup | null {
  if (!saved || saved.platform) return 'platform'
  if (saved.user === me) return 'mine'
  return saved.share === 'me' ? null : 'others'
}

function holds({ reference, saved }: Image, text: string): boolean {
  return `${reference} ${saved?.name} ${saved?.message} ${saved?.user}`.toLowerCase().includes(text)
}

export function ImagesPage() {
  const { t } = useTranslation('images')
  const navigate = useNavigate()
  const { group = 'mine', find = '' } = useSearch({ strict: false })
  const { data: me } = useSuspenseQuery(meQuery)
  const { data, error, isPending, refetch } = useQuery(imagesQuery)
  const all = data?.filter((image) => groupOf(image, me.name) === group)
  const shown = all?.filter((image) => holds(image, find.trim().toLowerCase()))
  const set = (search: Partial<ImagesSearch>) =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...search }), replace: true })
  const [typed, type] = useTyped(find, (text) => set({ find: text || undefined }))
  return (
    <Stack>
      <PageTitle>{t('title')}</PageTitle>
      <Group justify="space-between">
        <SegmentedControl<ImageGroup>
          aria-label={t('group')}
          data={IMAGE_GROUPS.map((value) => ({ value, label: t(`tab.${value}`) }))}
          value={group}
          onChange={(value) => set({ group: value })}
        />
        {all && all.length > 0 && (
          <TextInput
            aria-label={t('find')}
            placeholder={t('find')}
            leftSection={<IconSearch size={16} />}
            value={typed}
            onChange={(event) => type(event.currentTarget.value)}
          />
        )}
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows />}
      {all?.length === 0 && <NoImages group={group} />}
      {all && all.length > 0 && shown?.length === 0 && <Text>{t('no_match')}</Text>}
      {shown && shown.length > 0 && <ImageRecords images={shown} label={t('title')} />}
    </Stack>
  )
}

function NoImages({ group }: { group: ImageGroup }) {
  const { t } = useTranslation('images')
  return (
    <EmptyState
      icon={<IconImages size={48} stroke={1.25} />}
      title={t(`none.${group}`)}
      text={t(`none_text.${group}`)}
      action={
        group === 'mine' ? (
          <Button component={Link} to={paths.instances()}>
            {t('to_instances')}
          </Button>
        ) : null
      }
    />
  )
}

/** Images in rows; the columns of saved ones only where there are some. */
export function ImageRecords({ images, label }: { images: Image[]; label: string }) {
  const { t } = useTranslation('images')
  const sorting = useSort()
  const saved: RecordColumn<Image>[] = [
    { id: 'state', header: t('column.state'), cell: (image) => <ImageStanding image={image} /> },
    {
      id: 'user',
      header: t('column.user'),
      cell: (image) => <Text size="sm">{image.saved?.user}</Text>,
      sortBy: (image) => image.saved?.user ?? '',
    },
    {
      id: 'share',
      header: t('column.share'),
      cell: (image) => <Sharing image={image} />,
    },
  ]
  return (
    <Records
      label={label}
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
        ...(images.some((image) => image.saved) ? saved : []),
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
        <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
          {saved.message}
        </Text>
      )}
      {saved?.instance && (
        <Text size="xs" c="dimmed">
          {t('from', { instance: saved.instance })}
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

function Sharing({ image: { saved } }: { image: Image }) {
  const { t } = useTranslation('images')
  if (!saved) return <Text size="sm">{t('share.everyone')}</Text>
  return (
    <Stack gap={4} align="flex-start">
      <Text size="sm">{t(saved.platform ? 'share.everyone' : `share.${saved.share}`)}</Text>
      {saved.platform && (
        <Badge size="sm" variant="light" tt="none">
          {t('on_platform')}
        </Badge>
      )}
      {saved.proposed && !saved.platform && (
        <Badge size="sm" variant="light" color="yellow" tt="none">
          {t('proposed')}
        </Badge>
      )}
    </Stack>
  )
}

function ImageSize({ image }: { image: Image }) {
  const { t } = useTranslation('images')
  // Not known before it is whole.
  if (image.saved && image.saved.state.state !== 'ready') return null
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
