// Every link of the console. Pages never spell a path themselves.

export const INSTANCE_TABS = ['overview', 'terminal', 'logs'] as const
export type InstanceTab = (typeof INSTANCE_TABS)[number]

export function isInstanceTab(text: string): text is InstanceTab {
  return INSTANCE_TABS.some((tab) => tab === text)
}

export const paths = {
  home: () => '/',
  signIn: (next?: string) => (next ? `/login?next=${encodeURIComponent(next)}` : '/login'),
  instances: () => '/instances',
  newInstance: () => '/instances/new',
  instance: (name: string, tab: InstanceTab = 'overview') =>
    tab === 'overview'
      ? `/instances/${encodeURIComponent(name)}`
      : `/instances/${encodeURIComponent(name)}/${tab}`,
} as const

/** Where to go after signing in: only ever a path of this very site. */
export function safeNext(next: string | undefined): string {
  return next && /^\/(?![/\\])/.test(next) && !next.startsWith('/login') ? next : paths.home()
}
