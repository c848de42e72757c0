import { Alert, Anchor, Button, Group, SimpleGrid, Stack, Text } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { PreparingBanner } from '../../app/preparing-banner'
import { Trouble } from '../../app/trouble'
import { instancesQuery } from '../../api/instances'
import { jobsQuery } from '../../api/jobs'
import { rulesQuery, textFor } from '../../api/notices'
import { meQuery } from '../../api/session'
import { siteQuery } from '../../api/site'
import type { Instance, Job } from '../../api/types'
import { IconSettings } from '../../ui/icons'
import { LoadingRows } from '../../ui/loading'
import { PageTitle } from '../../ui/page-title'
import { Section } from '../../ui/section'
import { paths } from '../../util/path-builder'
import { CreateButton } from '../instances/create-button'
import { InstanceActions } from '../instances/actions'
import { Resources } from '../../ui/resources'
import { InstanceState } from '../instances/state'
import { JobState } from '../jobs/state'
import { ClusterGlance } from './cluster-glance'
import { FirstSteps } from './first-steps'
import { NeedsMe } from './needs-me'
import { QuotaBars } from './quotas'

/** How many instances are worth the room here. */
const SHOWN = 5

export function HomePage() {
  const { t } = useTranslation('home')
  const { data: me } = useSuspenseQuery(meQuery)
  return (
    <Stack>
      <Group justify="space-between">
        <PageTitle tab={t('title')}>{t('hello', { name: me.name })}</PageTitle>
        <CreateButton />
      </Group>
      <PreparingBanner of={['base', 'tools']} />
      {me.role === 'admin' && <SetupCard />}
      <NeedsMe me={me.name} />
      <FirstSteps />
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Stack>
          <MyWork />
          <MyJobs />
        </Stack>
        <Stack>
          <QuotaBars />
          <ClusterGlance />
          <RulesSection />
        </Stack>
      </SimpleGrid>
    </Stack>
  )
}

const OVER: readonly Instance['status']['state'][] = ['stopped', 'succeeded', 'failed']

const isOver = (one: Instance | Job) => OVER.includes(one.status.state)

/** What goes on first, then what has ended last. */
function byInterest(instances: Instance[]): Instance[] {
  return instances.toSorted((a, b) => Number(isOver(a)) - Number(isOver(b))).slice(0, SHOWN)
}

/** Until an admin has been through the first steps, or has put them away. */
function SetupCard() {
  const { t } = useTranslation('home')
  const { data: site } = useQuery(siteQuery)
  if (!site || site.set_up) return null
  return (
    <Alert color="blue" icon={<IconSettings />} title={t('setup.title')}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{t('setup.text')}</Text>
        <Button size="xs" component={Link} to={paths.setup()}>
          {t('setup.begin')}
        </Button>
      </Group>
    </Alert>
  )
}

function MyWork() {
  const { t } = useTranslation('home')
  const { data, error, isPending, refetch } = useQuery(instancesQuery)
  return (
    <Section
      title={t('work')}
      aside={
        <Anchor component={Link} to={paths.instances()} size="sm">
          {t('all_work')}
        </Anchor>
      }
    >
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={2} />}
      {data?.length === 0 && <Text size="sm">{t('nothing_runs')}</Text>}
      {data && byInterest(data).map((instance) => <Work key={instance.id} instance={instance} />)}
    </Section>
  )
}

/** Only where there are any: not everybody has jobs. */
function MyJobs() {
  const { t } = useTranslation('home')
  const { data } = useQuery(jobsQuery('own'))
  if (!data || data.length === 0) return null
  const shown = data.toSorted((a, b) => Number(isOver(a)) - Number(isOver(b))).slice(0, SHOWN)
  return (
    <Section
      title={t('jobs')}
      aside={
        <Anchor component={Link} to={paths.jobs()} size="sm">
          {t('all_jobs')}
        </Anchor>
      }
    >
      {shown.map((job) => (
        <Group key={job.id} gap="sm" component="article" aria-label={job.name}>
          <Anchor component={Link} to={paths.job(job)} fw={600} className="breakable">
            {job.name}
          </Anchor>
          <JobState job={job} inLine />
        </Group>
      ))}
    </Section>
  )
}

function Work({ instance }: { instance: Instance }) {
  return (
    <Stack gap={4} component="article" aria-label={instance.name}>
      <Group justify="space-between" gap="xs">
        <Group gap="sm">
          <Anchor component={Link} to={paths.instance(instance)} fw={600}>
            {instance.name}
          </Anchor>
          <InstanceState instance={instance} inLine />
        </Group>
        <InstanceActions instance={instance} compact />
      </Group>
      <Resources asked={instance} />
    </Stack>
  )
}

function RulesSection() {
  const { t } = useTranslation('home')
  const { data: rules } = useQuery(rulesQuery)
  const text = rules ? textFor(rules.text) : ''
  if (text === '') return null
  return (
    <Section title={t('rules')}>
      <Text size="sm" className="breakable" style={{ whiteSpace: 'pre-line' }}>
        {text}
      </Text>
    </Section>
  )
}
