import { Anchor, Card, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { meQuery } from '../../../api/session'
import { imagesQuery } from '../../../api/site'
import type { Instance } from '../../../api/types'
import { Section } from '../../../ui/section'
import { TimeAgo } from '../../../ui/time-ago'
import { paths } from '../../../util/path-builder'
import { lastSaved, type Save, savesOf } from '../../../util/saves-of'
import { RemoveImage } from '../../images/removal'
import { ImageStanding } from '../../images/state'

/** What was saved from one's own instance; undefined while that is not known, as it never is of somebody else's. */
function useSaves(instance: Instance): Save[] | undefined {
  const { data: me } = useQuery(meQuery)
  const { data: images } = useQuery(imagesQuery)
  return images && me?.name === instance.user ? savesOf(images, instance) : undefined
}

const fullName = ({ saved }: Save) => `${saved.name}:${saved.tag}`

/** Saves that are under way, on every tab: how far they are, and the way to give them up. */
export function RunningSaves({ instance }: { instance: Instance }) {
  const running = useSaves(instance)?.filter(({ saved }) => saved.state.state === 'saving') ?? []
  return running.map((image) => (
    <Card key={image.saved.id} withBorder padding="sm" component="section" aria-label={fullName(image)}>
      <Group justify="space-between" align="flex-start">
        <Stack gap={4} flex={1}>
          <Text size="sm" fw={600} className="breakable">
            {fullName(image)}
          </Text>
          <ImageStanding image={image} />
        </Stack>
        <RemoveImage saved={image.saved} />
      </Group>
    </Card>
  ))
}

/** What would be left of it in images. */
export function LastSave({ instance }: { instance: Instance }) {
  const { t } = useTranslation('instances')
  const saves = useSaves(instance)
  if (!saves) return null
  const last = lastSaved(saves)
  return (
    <Section title={t('overview.saved')}>
      {last ? (
        <Group gap="xs">
          <Anchor component={Link} to={paths.images()} size="sm" className="breakable">
            {fullName(last)}
          </Anchor>
          <TimeAgo at={last.created_at} />
        </Group>
      ) : (
        <Text size="sm">{t('overview.never_saved')}</Text>
      )}
    </Section>
  )
}
