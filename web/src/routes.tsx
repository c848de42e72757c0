// The map of the console. `src/pages/` mirrors it; the paths themselves are spelt in `util/path-builder.ts` too, for
// links.

import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  Outlet,
  redirect,
  useRouter,
} from '@tanstack/react-router'

import { ApiError } from './api/client'
import { meQuery } from './api/session'
import { isTerminalName, MAIN_TERMINAL } from './api/terminal'
import { Shell } from './app/shell'
import { Trouble } from './app/trouble'
import { InstancesPage, type InstancesSearch } from './pages/instances'
import { InstancePage } from './pages/instances/instance'
import { LoginPage, type LoginSearch } from './pages/login'
import { NotFoundPage } from './pages/not-found'
import { isInstanceTab, paths } from './util/path-builder'

interface Context {
  cache: QueryClient
}

interface TerminalSearch {
  terminal?: string
}

const root = createRootRouteWithContext<Context>()({ component: Outlet })

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
  },
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: paths.instances() })
  },
})

const SORTABLE = /^-?(name|state|image|age)$/

const instances = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances',
  validateSearch: ({ sort }: Record<string, unknown>): InstancesSearch =>
    typeof sort === 'string' && SORTABLE.test(sort) ? { sort } : {},
  component: InstancesPage,
})

const newInstance = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances/new',
  // Its form controls are a good part of the first load, and most visits do not create anything.
  component: lazyRouteComponent(() => import('./pages/instances/new'), 'NewInstancePage'),
})

const instance = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances/$name',
  component: function Overview() {
    return <InstancePage name={instance.useParams().name} tab="overview" terminal={MAIN_TERMINAL} />
  },
})

const instanceTab = createRoute({
  getParentRoute: () => signedIn,
  path: '/instances/$name/$tab',
  validateSearch: ({ terminal }: Record<string, unknown>): TerminalSearch =>
    isTerminalName(terminal) ? { terminal } : {},
  component: function Tab() {
    const { name, tab } = instanceTab.useParams()
    const { terminal } = instanceTab.useSearch()
    if (!isInstanceTab(tab)) return <NotFoundPage />
    return <InstancePage name={name} tab={tab} terminal={terminal ?? MAIN_TERMINAL} />
  },
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

export function buildRouter(cache: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([
      login,
      signedIn.addChildren([home, instances, newInstance, instance, instanceTab]),
    ]),
    context: { cache },
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: NotFoundPage,
    defaultPreload: false,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof buildRouter>
  }
}
