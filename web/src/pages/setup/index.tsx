import { Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { showTrouble, Trouble } from '../../app/trouble'
import { SiteForm } from '../../app/site-form'
import { healthQuery } from '../../api/health'
import { instancesQuery } from '../../api/instances'
import { usersQuery } from '../../api/people'
import { meQuery } from '../../api/session'
import { changeSite, siteQuery } from '../../api/site'
import { IconBox, IconCheck, IconUserPlus } from '../../ui/icons'
import { PageTitle } from '../../ui/page-title'
import { ReasonedButton } from '../../ui/reasoned-button'
import { Section } from '../../ui/section'
import { paths } from '../../util/path-builder'
import { AddUserDialog } from '../admin/add-user'
import { NotFoundPage } from '../not-found'

/** The first steps of whoever has just set Berth up. All of them can be left out, and come back to. */
export function SetupPage() {
  const { t } = useTranslation('home')
  const { data: me } = useSuspenseQuery(meQuery)
  const site = useQuery(siteQuery)
  if (me.role !== 'admin') return <NotFoundPage />
  return (
    <Stack maw={760}>
      <PageTitle>{t('setup.title')}</PageTitle>
      <Text c="dimmed">{t('setup.text')}</Text>
      {site.error && <Trouble error={site.error} onRetry={() => void site.refetch()} />}
      {site.isPending && <Skeleton className="after-a-moment" height={240} />}
      <Step number={1} title={t('setup.password')} done>
        <Text size="sm">{t('setup.password_done')}</Text>
      </Step>
      {site.data && (
        <Step number={2} title={t('setup.site')} done={site.data.name !== ''}>
          <SiteForm site={site.data} />
        </Step>
      )}
      <HealthStep />
      <UserStep />
      <InstanceStep />
      <Finish />
    </Stack>
  )
}

interface StepProps {
  number: number
  title: string
  done: boolean
  children: ReactNode
}

function Step({ number, title, done, children }: StepProps) {
  const { t } = useTranslation('home')
  return (
    <Section
      title={`${number}. ${title}`}
      aside={
        done ? (
          <Group gap={4}>
            <IconCheck size={18} aria-hidden />
            <Text size="sm">{t('begin.done')}</Text>
          </Group>
        ) : null
      }
    >
      {children}
    </Section>
  )
}

function HealthStep() {
  const { t } = useTranslation('home')
  const { data, error } = useQuery(healthQuery)
  const well = data !== undefined && data.every((part) => part.ok)
  return (
    <Step number={3} title={t('setup.health')} done={well}>
      {error && <Trouble error={error} />}
      {data && <Text size="sm">{t(well ? 'setup.health_well' : 'setup.health_unwell')}</Text>}
      <Group>
        <Button variant="default" component={Link} to={paths.admin('health')}>
          {t('setup.to_health')}
        </Button>
      </Group>
    </Step>
  )
}

function UserStep() {
  const { t } = useTranslation(['home', 'admin'])
  const { data: users = [] } = useQuery(usersQuery)
  const [adding, setAdding] = useState(false)
  return (
    <Step number={4} title={t('setup.user')} done={users.length > 1}>
      <Text size="sm">{t('setup.user_text')}</Text>
      <Group>
        <Button variant="default" leftSection={<IconUserPlus size={18} />} onClick={() => setAdding(true)}>
          {t('admin:users.add')}
        </Button>
      </Group>
      <AddUserDialog opened={adding} onClose={() => setAdding(false)} />
    </Step>
  )
}

function InstanceStep() {
  const { t } = useTranslation('home')
  const { data: instances = [] } = useQuery(instancesQuery)
  return (
    <Step number={5} title={t('setup.instance')} done={instances.length > 0}>
      <Text size="sm">{t('setup.instance_text')}</Text>
      <Group>
        <Button
          variant="default"
          leftSection={<IconBox size={18} />}
          component={Link}
          to={paths.newInstance()}
        >
          {t('begin.instance')}
        </Button>
      </Group>
    </Step>
  )
}

function Finish() {
  const { t } = useTranslation('home')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const finish = useMutation({
    mutationFn: () => changeSite({ set_up: true }),
    onSuccess: async (site) => {
      cache.setQueryData(siteQuery.queryKey, site)
      await navigate({ to: paths.home() })
    },
    onError: showTrouble,
  })
  return (
    <Group>
      <ReasonedButton label={t('setup.finish')} busy={finish.isPending} onClick={() => finish.mutate()} />
    </Group>
  )
}
