import { Anchor, Loader, Stack, Text } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../app/trouble'
import { leadsTo, openApp } from '../api/apps'
import { ApiError } from '../api/client'
import { meQuery } from '../api/session'
import { PageTitle } from '../ui/page-title'
import { type AppHost, paths, readAppHost, safeNext } from '../util/path-builder'

const route = getRouteApi('/signed-in/enter')

/** Either where one came from, or an app of an instance by its id. */
export interface EnterSearch {
  /** The app's address, as `lab--train--alice`. */
  host?: string
  /** The page of the app that was asked for. */
  next?: string
  instance?: string
  app?: string
  /** What TensorBoard is to show. */
  folder?: string
}

/**
 * The way to an app at its own address, also for whoever came from there without being signed in. Where it leads is what
 * the gateway says for an instance of this very user: nothing in the address of this page can name another site.
 */
export function EnterPage() {
  const { t } = useTranslation('apps')
  const { host, next, instance, app, folder } = route.useSearch()
  const { data: me } = useSuspenseQuery(meQuery)
  const to = host === undefined ? chosen(instance, app) : own(host, me.name)
  return (
    <Stack align="flex-start">
      <PageTitle>{t('enter.title')}</PageTitle>
      {to === null ? (
        <NoSuchApp />
      ) : (
        <Entering
          host={host}
          to={to}
          path={next === undefined ? undefined : safeNext(next)}
          folder={folder}
        />
      )}
    </Stack>
  )
}

function chosen(instance: string | undefined, app: string | undefined): AppHost | null {
  return instance === undefined || app === undefined ? null : { instance, app }
}

/** The app at that address, if it can be one of this user's. */
function own(host: string, me: string): AppHost | null {
  const named = readAppHost(host)
  return named?.user === undefined || named.user === me ? named : null
}

interface Props {
  host?: string
  to: AppHost
  path?: string
  folder?: string
}

function Entering({ host, to, path, folder }: Props) {
  const { t } = useTranslation('apps')
  const { data, error, refetch } = useQuery({
    queryKey: ['enter', to, path ?? '', folder ?? ''],
    queryFn: () => openApp(to.instance, to.app, { path, folder }),
    staleTime: Infinity,
    gcTime: 0,
    refetchInterval: false,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  })
  const right = data !== undefined && (host === undefined || leadsTo(data, host))
  useEffect(() => {
    if (right) window.location.replace(data)
  }, [right, data])
  if (error instanceof ApiError && error.problem.code === 'not_found') return <NoSuchApp />
  if (error) {
    return (
      <>
        <Trouble error={error} onRetry={() => void refetch()} />
        <Anchor component={Link} to={paths.instance(to.instance)}>
          {t('enter.instance', { name: to.instance })}
        </Anchor>
      </>
    )
  }
  if (data !== undefined && !right) return <NoSuchApp />
  return <Loader type="dots" aria-label={t('enter.opening')} />
}

/** Not there and not yours read the same. */
function NoSuchApp() {
  const { t } = useTranslation('apps')
  return (
    <>
      <Text>{t('enter.nothing')}</Text>
      <Anchor component={Link} to={paths.instances()}>
        {t('enter.instances')}
      </Anchor>
    </>
  )
}
