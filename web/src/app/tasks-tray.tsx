import { ActionIcon, Anchor, Divider, Indicator, Popover, Stack, Text, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { instancesQuery } from '../api/instances'
import { jobsQuery } from '../api/jobs'
import { imagesQuery } from '../api/site'
import type { Image, Instance, Job, Me } from '../api/types'
import { IconTasks } from '../ui/icons'
import { ImageStanding } from '../pages/images/state'
import { InstanceState } from '../pages/instances/state'
import { JobState } from '../pages/jobs/state'
import { paths } from '../util/path-builder'

/** For how long what is done is still news. */
const NEWS_MS = 30 * 60_000

const UNDER_WAY: readonly Instance['status']['state'][] = [
  'waiting',
  'pulling',
  'starting',
  'stopping',
  'deleting',
]

interface Act {
  id: string
  name: string
  path: string
  standing: ReactNode
}

function instanceActs(instances: Instance[]): Act[] {
  return instances
    .filter(({ status, job }) => !job && UNDER_WAY.includes(status.state))
    .map((instance) => ({
      id: instance.id,
      name: instance.name,
      path: paths.instance(instance.id),
      standing: <InstanceState instance={instance} />,
    }))
}

function jobActs(jobs: Job[]): Act[] {
  return jobs
    .filter(({ status }) => UNDER_WAY.includes(status.state))
    .map((job) => ({
      id: job.id,
      name: job.name,
      path: paths.job(job.id),
      standing: <JobState job={job} />,
    }))
}

function imageAct(image: Image): Act[] {
  const { saved } = image
  if (!saved) return []
  return [
    {
      id: saved.id,
      name: `${saved.name}:${saved.tag}`,
      path: paths.images(),
      standing: <ImageStanding image={image} />,
    },
  ]
}

const isUnderWay = ({ saved }: Image) => saved?.state.state === 'saving' || saved?.state.state === 'deleting'

function isNews({ saved, created_at }: Image, now: number): boolean {
  const over = saved?.state.state === 'ready' || saved?.state.state === 'failed'
  return over && now - new Date(created_at).getTime() < NEWS_MS
}

/** What takes long and goes on by itself, wherever one is and whether or not the page was loaded again. */
export function TasksTray({ me }: { me: Me }) {
  const { t } = useTranslation()
  const [opened, { toggle, close }] = useDisclosure()
  const [now, setNow] = useState(() => Date.now())
  const { data: instances = [] } = useQuery(instancesQuery)
  const { data: jobs = [] } = useQuery(jobsQuery('own'))
  const { data: images = [] } = useQuery(imagesQuery)
  const mine = images.filter(({ saved }) => saved?.user === me.name)
  const going = [...mine.filter(isUnderWay).flatMap(imageAct), ...instanceActs(instances), ...jobActs(jobs)]
  const done = mine.filter((image) => isNews(image, now)).flatMap(imageAct)
  const label = t('tasks.open', { count: going.length })
  return (
    <Popover
      opened={opened}
      onChange={(open) => !open && close()}
      position="bottom-end"
      withArrow
      width={340}
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <Tooltip label={label}>
          <Indicator label={going.length} size={16} disabled={going.length === 0} offset={4}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={label}
              aria-expanded={opened}
              onClick={() => {
                setNow(Date.now())
                toggle()
              }}
            >
              <IconTasks size={20} stroke={1.75} />
            </ActionIcon>
          </Indicator>
        </Tooltip>
      </Popover.Target>
      <Popover.Dropdown aria-label={t('tasks.title')}>
        <Stack gap="sm" mah="70vh" style={{ overflowY: 'auto' }}>
          <Text fw={600}>{t('tasks.title')}</Text>
          {going.length === 0 && (
            <Text size="sm" c="dimmed">
              {t('tasks.none')}
            </Text>
          )}
          <Acts acts={going} onChoose={close} />
          {done.length > 0 && (
            <>
              <Divider />
              <Text size="sm" fw={600}>
                {t('tasks.done')}
              </Text>
              <Acts acts={done} onChoose={close} />
            </>
          )}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

function Acts({ acts, onChoose }: { acts: Act[]; onChoose: () => void }) {
  return acts.map(({ id, name, path, standing }) => (
    <Stack key={id} gap={4} component="article" aria-label={name}>
      <Anchor component={Link} to={path} size="sm" fw={600} className="breakable" onClick={onChoose}>
        {name}
      </Anchor>
      {standing}
    </Stack>
  ))
}
