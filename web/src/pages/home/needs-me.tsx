import { Alert, Anchor, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { instancesQuery } from '../../api/instances'
import { jobsQuery } from '../../api/jobs'
import { imagesQuery } from '../../api/site'
import { useNow } from '../../app/use-now'
import { IconAlert } from '../../ui/icons'
import { TimeAgo } from '../../ui/time-ago'
import { type Need, needsOf } from '../../util/needs-me'
import { paths } from '../../util/path-builder'

function pathOf({ of: { kind, id } }: Need): string {
  if (kind === 'images') return paths.images()
  return kind === 'job' ? paths.job(id) : paths.instance(id)
}

/** What somebody should look at now; nothing where all is well. */
export function NeedsMe({ me }: { me: string }) {
  const { t } = useTranslation('home')
  const { data: instances = [] } = useQuery(instancesQuery)
  const { data: jobs = [] } = useQuery(jobsQuery('own'))
  const { data: images = [] } = useQuery(imagesQuery)
  const needs = needsOf(me, { instances, jobs, images }, useNow(jobs.length > 0))
  if (needs.length === 0) return null
  return (
    <Alert color="orange" role="note" icon={<IconAlert />} title={t('needs.title')}>
      <Stack gap={4}>
        {needs.map((need) => (
          <Group key={need.key} gap="xs">
            <Anchor component={Link} to={pathOf(need)} size="sm" fw={600} className="breakable">
              {need.name}
            </Anchor>
            <Text size="sm">{t(`needs.${need.why}`)}</Text>
            {need.at && <TimeAgo at={need.at} />}
          </Group>
        ))}
      </Stack>
    </Alert>
  )
}
