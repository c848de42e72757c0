// The map of the console. `src/pages/` mirrors it; the paths themselves are spelt in `util/path-builder.ts` too, for
// links.

import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Outlet,
  redirect,
  useParams,
  useRouter,
  useSearch,
} from '@tanstack/react-router'
import { Suspense } from 'react'

import { ApiError } from './api/client'
import { meQuery } from './api/session'
import { isTerminalName, MAIN_TERMINAL } from './api/terminal'
import { settleLanguage } from './app/own-language'
import { Shell } from './app/shell'
import { Trouble } from './app/trouble'
import { readSort, type SortSearch } from './app/use-sort'
import type { EnterSearch } from './pages/enter'
import { HomePage } from './pages/home'
import type { ImagesSearch } from './pages/images'
import type { InstancesSearch } from './pages/instances'
import type { NewInstanceSearch } from './pages/instances/new'
import type { JobsSearch } from './pages/jobs'
import type { JobTabSearch } from './pages/jobs/job'
import type { NewJobSearch } from './pages/jobs/new'
import type { LoginSearch } from './pages/login'
import { NotFoundPage } from './pages/not-found'
import { type FilterSearch, readFilter } from './util/filter'
import { folderProblem } from './util/folder'
import { firstPart, later } from './util/later'
import { isMetricsRange, type MetricsRange } from './util/metrics-range'
import {
  isAdminSection,
  isImageGroup,
  isInstanceTab,
  isJobTab,
  isSettingsSection,
  paths,
} from './util/path-builder'
import { isUsageKey, type UsageKey } from './util/usage'

// The first page is Home.
const LoginPage = firstPart(async () => ({ default: (await import('./pages/login')).LoginPage }))
const EnterPage = firstPart(async () => ({ default: (await import('./pages/enter')).EnterPage }))
const InstancesPage = later(async () => ({ default: (await import('./pages/instances')).InstancesPage }))
const InstancePage = later(async () => ({
  default: (await import('./pages/instances/instance')).InstancePage,
}))
const NewInstancePage = later(async () => ({
  default: (await import('./pages/instances/new')).NewInstancePage,
}))
const JobsPage = later(async () => ({ default: (await import('./pages/jobs')).JobsPage }))
const NewJobPage = later(async () => ({ default: (await import('./pages/jobs/new')).NewJobPage }))
const JobPage = later(async () => ({ default: (await import('./pages/jobs/job')).JobPage }))
const QueuePage = later(async () => ({ default: (await import('./pages/queue')).QueuePage }))
const ClusterPage = later(async () => ({ default: (await import('./pages/cluster')).ClusterPage }))
const ImagesPage = later(async () => ({ default: (await import('./pages/images')).ImagesPage }))
const HelpPage = later(async () => ({ default: (await import('./pages/help')).HelpPage }))
const SetupPage = later(async () => ({ default: (await import('./pages/setup')).SetupPage }))
const SettingsPage = later(async () => ({ default: (await import('./pages/settings')).SettingsPage }))
const AdminPage = later(async () => ({ default: (await import('./pages/admin')).AdminPage }))

interface Context {
  cache: QueryClient
}

interface TabSearch {
  terminal?: string
  folder?: string
  /** What is searched for in the log. */
  find?: string
  /** The line of the log that is looked at, from 1. */
  line?: number
  /** How far back plots go. */
  range?: MetricsRange
}

/** A number from 1 that stands in an address. */
function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0
}

const root = createRootRouteWithContext<Context>()({
  component: () => (
    <Suspense>
      <Outlet />
    </Suspense>
  ),
})

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: ({ next }: Record<string, unknown>): LoginSearch =>
    typeof next === 'string' ? { next } : {},
  component: LoginPage,
})

const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ context, location }) => {
    try {
      await context.cache.ensureQueryData(meQuery)
    } catch (error) {
      if (!isSignedOut(error)) throw error
      throw redirect({ href: paths.signIn(location.href) })
    }
    await settleLanguage(context.cache)
  },
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  component: HomePage,
})

const instances = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances',
  validateSearch: (search: Record<string, unknown>): InstancesSearch => ({
    ...readSort(search.sort),
    ...readFilter(search),
  }),
  component: InstancesPage,
})

const newInstance = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances/new',
  validateSearch: ({ from, image, gpus }: Record<string, unknown>): NewInstanceSearch => ({
    ...((isCount(gpus) || gpus === 0) && { gpus }),
    ...((typeof from === 'string' || typeof from === 'number') && { from: String(from) }),
    ...(typeof image === 'string' && { image }),
  }),
  component: NewInstancePage,
})

// One page for all tabs, so that what is framed in one is still there after a look at another.
const instance = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances/$name',
  component: function Tabs() {
    const { name } = instance.useParams()
    const { tab = 'overview' } = useParams({ strict: false })
    const { terminal = MAIN_TERMINAL, folder } = useSearch({ strict: false })
    if (!isInstanceTab(tab)) return <NotFoundPage />
    return <InstancePage name={name} tab={tab} terminal={terminal} folder={folder} />
  },
})

const instanceOverview = createRoute({ getParentRoute: () => instance, path: '/' })

const instanceTab = createRoute({
  getParentRoute: () => instance,
  path: '/$tab',
  validateSearch: ({ terminal, folder, find, line, range }: Record<string, unknown>): TabSearch => ({
    ...(isMetricsRange(range) && { range }),
    ...(isCount(line) && { line }),
    ...((typeof find === 'string' || typeof find === 'number') && { find: String(find) }),
    ...(isTerminalName(terminal) && { terminal }),
    ...(typeof folder === 'string' && folderProblem(folder) === null && { folder }),
  }),
})

const jobs = createRoute({
  getParentRoute: () => signedIn,
  path: '/jobs',
  validateSearch: (search: Record<string, unknown>): JobsSearch => ({
    ...readSort(search.sort),
    ...readFilter(search),
    ...(search.all === true && { all: true }),
  }),
  component: JobsPage,
})

const newJob = createRoute({
  getParentRoute: () => signedIn,
  path: '/jobs/new',
  validateSearch: ({ from, image, gpus }: Record<string, unknown>): NewJobSearch => ({
    ...((isCount(gpus) || gpus === 0) && { gpus }),
    ...((typeof from === 'string' || typeof from === 'number') && { from: String(from) }),
    ...(typeof image === 'string' && { image }),
  }),
  component: NewJobPage,
})

const job = createRoute({
  getParentRoute: () => signedIn,
  path: '/jobs/$name',
  component: function Tabs() {
    const { name } = job.useParams()
    const { tab = 'overview' } = useParams({ strict: false })
    return isJobTab(tab) ? <JobPage name={name} tab={tab} /> : <NotFoundPage />
  },
})

const jobOverview = createRoute({ getParentRoute: () => job, path: '/' })

const jobTab = createRoute({
  getParentRoute: () => job,
  path: '/$tab',
  validateSearch: ({ task, find, line, attempt, range }: Record<string, unknown>): JobTabSearch => ({
    ...(isMetricsRange(range) && { range }),
    ...(isCount(line) && { line }),
    ...(isCount(attempt) && { attempt }),
    ...(typeof task === 'string' && { task }),
    ...((typeof find === 'string' || typeof find === 'number') && { find: String(find) }),
  }),
})

const queue = createRoute({
  getParentRoute: () => signedIn,
  path: '/queue',
  component: QueuePage,
})

const cluster = createRoute({
  getParentRoute: () => signedIn,
  path: '/cluster',
  component: ClusterPage,
})

const images = createRoute({
  getParentRoute: () => signedIn,
  path: '/images',
  validateSearch: ({ sort, group, find }: Record<string, unknown>): ImagesSearch => ({
    ...readSort(sort),
    ...((typeof find === 'string' || typeof find === 'number') && { find: String(find) }),
    ...(isImageGroup(group) && { group }),
  }),
  component: ImagesPage,
})

const help = createRoute({
  getParentRoute: () => signedIn,
  path: '/help',
  component: HelpPage,
})

const setup = createRoute({
  getParentRoute: () => signedIn,
  path: '/setup',
  component: SetupPage,
})

const settings = createRoute({
  getParentRoute: () => signedIn,
  path: '/settings',
  beforeLoad: ({ location }) => {
    if (location.pathname.replace(/\/$/, '') === '/settings') throw redirect({ to: paths.settings() })
  },
})

const settingsSection = createRoute({
  getParentRoute: () => settings,
  path: '/$section',
  component: function Section() {
    const { section } = settingsSection.useParams()
    return isSettingsSection(section) ? <SettingsPage section={section} /> : <NotFoundPage />
  },
})

interface AdminSearch extends SortSearch, FilterSearch {
  actor?: string
  act?: string
  days?: string
  /** What usage is summed up by. */
  by?: UsageKey
}

const admin = createRoute({
  getParentRoute: () => signedIn,
  path: '/admin',
  beforeLoad: ({ location }) => {
    if (location.pathname.replace(/\/$/, '') === '/admin') throw redirect({ to: paths.admin() })
  },
})

const adminSection = createRoute({
  getParentRoute: () => admin,
  path: '/$section',
  validateSearch: ({ sort, actor, act, days, by, ...rest }: Record<string, unknown>): AdminSearch => ({
    ...readSort(sort),
    ...readFilter(rest),
    ...(isUsageKey(by) && { by }),
    // A number is a name too, to whoever reads the address.
    ...((typeof actor === 'string' || typeof actor === 'number') && { actor: String(actor) }),
    ...(typeof act === 'string' && { act }),
    ...((typeof days === 'string' || typeof days === 'number') && { days: String(days) }),
  }),
  component: function Section() {
    const { section } = adminSection.useParams()
    return isAdminSection(section) ? <AdminPage section={section} /> : <NotFoundPage />
  },
})

const enter = createRoute({
  getParentRoute: () => signedIn,
  path: '/enter',
  validateSearch: ({ host, next, instance: id, app, folder }: Record<string, unknown>): EnterSearch => ({
    ...(typeof host === 'string' && { host }),
    ...(typeof next === 'string' && { next }),
    ...(typeof id === 'string' && { instance: id }),
    // A port is a number to whoever reads the address.
    ...((typeof app === 'string' || typeof app === 'number') && { app: String(app) }),
    ...(typeof folder === 'string' && { folder }),
  }),
  component: EnterPage,
})

export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.problem.code === 'unauthenticated'
}

function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  const retry = () => {
    reset()
    void router.invalidate()
  }
  return (
    <main style={{ padding: 16 }}>
      <Trouble error={error} onRetry={retry} />
    </main>
  )
}

/** An address of nothing stands alone, without the shell. */
function Nowhere() {
  return (
    <main>
      <NotFoundPage />
    </main>
  )
}

export function buildRouter(cache: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([
      login,
      signedIn.addChildren([
        home,
        instances,
        newInstance,
        instance.addChildren([instanceOverview, instanceTab]),
        jobs,
        newJob,
        job.addChildren([jobOverview, jobTab]),
        queue,
        images,
        cluster,
        help,
        setup,
        settings.addChildren([settingsSection]),
        admin.addChildren([adminSection]),
        enter,
      ]),
    ]),
    context: { cache },
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: Nowhere,
    defaultPreload: false,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof buildRouter>
  }
}
