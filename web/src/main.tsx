// Puts the parts together: language, theme, cache, routes, live events. Nothing else.

import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './styles.css'

import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { ApiError } from './api/client'
import { Live } from './api/live'
import { meQuery } from './api/session'
import { LiveContext } from './app/live-context'
import { setSessionEnded } from './app/session-ended'
import { takeTicket, TicketGate } from './app/ticket-gate'
import { startLanguage } from './i18n/language'
import { buildRouter, isSignedOut } from './routes'
import { colorSchemes, readableColors, theme } from './theme'
import { paths } from './util/path-builder'

const POLL_MS = 5_000

/** What the gateway has refused it will refuse again; only a silent one is worth another try. */
function worthRetrying(failures: number, error: Error): boolean {
  return failures < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500)
}

const cache: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: askToSignIn }),
  mutationCache: new MutationCache({ onError: askToSignIn }),
  defaultOptions: {
    // A lost network is said at once; nothing waits for it in silence.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      retry: worthRetrying,
      // Events keep the cache true; without them it is read again and again.
      staleTime: POLL_MS,
      refetchInterval: () => (live.current() === 'lost' ? POLL_MS : false),
    },
  },
})
const live: Live = new Live(cache)
const router = buildRouter(cache)

function askToSignIn(error: unknown) {
  if (!isSignedOut(error)) return
  // Over an open page, which may hold what somebody has typed.
  if (cache.getQueryData(meQuery.queryKey) !== undefined) return setSessionEnded(true)
  const here = router.state.location
  if (here.pathname !== paths.signIn()) void router.navigate({ href: paths.signIn(here.href) })
}

// A screen reader says where one has arrived; the keyboard goes on from there. Not when a tab was chosen: its own
// focus must stay in the list of tabs.
router.subscribe('onRendered', ({ fromLocation, pathChanged }) => {
  if (!fromLocation || !pathChanged || document.activeElement?.getAttribute('role') === 'tab') return
  document.querySelector<HTMLElement>('h1')?.focus()
})

// Before anything else sees the address.
const ticket = takeTicket()

async function start() {
  await startLanguage()
  const place = document.getElementById('root')
  if (place === null) throw new Error('the page has no place for the console')
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={cache}>
        <MantineProvider
          theme={theme}
          cssVariablesResolver={readableColors}
          colorSchemeManager={colorSchemes}
          defaultColorScheme="auto"
        >
          <Notifications position="bottom-right" />
          <LiveContext value={live}>
            <TicketGate ticket={ticket}>
              <RouterProvider router={router} />
            </TicketGate>
          </LiveContext>
        </MantineProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
  forgetTries()
}

/** All files of the page are here: `before-paint.js` counts anew when one is missing. */
function forgetTries() {
  try {
    sessionStorage.removeItem('berth.load-tries')
  } catch {
    // Storage can be forbidden; then nobody counts.
  }
}

void start()
