// Every link of the console. Pages never spell a path themselves.

/** Apps with pages of their own, which the console frames. */
export const FRAMED_APPS = ['lab', 'ide', 'tensorboard'] as const
export type FramedApp = (typeof FRAMED_APPS)[number]

export const INSTANCE_TABS = [
  'overview',
  'lab',
  'ide',
  'terminal',
  'tensorboard',
  'desktop',
  'ssh',
  'ports',
  'logs',
  'metrics',
  'events',
  'spec',
] as const
export type InstanceTab = (typeof INSTANCE_TABS)[number]

export function isInstanceTab(text: string): text is InstanceTab {
  return INSTANCE_TABS.some((tab) => tab === text)
}

export function isFramedApp(text: string): text is FramedApp {
  return FRAMED_APPS.some((app) => app === text)
}

export const JOB_TABS = ['overview', 'logs', 'metrics', 'events', 'file'] as const
export type JobTab = (typeof JOB_TABS)[number]

export function isJobTab(text: string): text is JobTab {
  return JOB_TABS.some((tab) => tab === text)
}

/** Whose images a list shows. */
export const IMAGE_GROUPS = ['mine', 'platform', 'others'] as const
export type ImageGroup = (typeof IMAGE_GROUPS)[number]

export function isImageGroup(value: unknown): value is ImageGroup {
  return IMAGE_GROUPS.some((group) => group === value)
}

export const SETTINGS_SECTIONS = [
  'profile',
  'appearance',
  'ssh-keys',
  'tokens',
  'secrets',
  'security',
  'activity',
] as const
export type SettingsSection = (typeof SETTINGS_SECTIONS)[number]

export function isSettingsSection(text: string): text is SettingsSection {
  return SETTINGS_SECTIONS.some((section) => section === text)
}

export const ADMIN_SECTIONS = [
  'users',
  'groups',
  'nodes',
  'instances',
  'jobs',
  'images',
  'usage',
  'announcements',
  'audit',
  'health',
  'settings',
] as const
export type AdminSection = (typeof ADMIN_SECTIONS)[number]

export function isAdminSection(text: string): text is AdminSection {
  return ADMIN_SECTIONS.some((section) => section === text)
}

/** Something that pages are about. */
interface Named {
  id: string
  name: string
}

/** Its name in an address, or the id or name itself. What is called `new` goes by its id: `/new` is the form. */
function wordOf(which: string | Named): string {
  if (typeof which === 'string') return encodeURIComponent(which)
  return encodeURIComponent(which.name.toLowerCase() === 'new' ? which.id : which.name)
}

export const paths = {
  home: () => '/',
  setup: () => '/setup',
  help: () => '/help',
  signIn: (next?: string) => (next ? `/login?next=${encodeURIComponent(next)}` : '/login'),
  instances: () => '/instances',
  newInstance: () => '/instances/new',
  /** The form for a new instance, filled in as another one was made. */
  cloneOf: (name: string) => `/instances/new?from=${encodeURIComponent(name)}`,
  newInstanceOf: (image: string) => `/instances/new?image=${encodeURIComponent(image)}`,
  instance: (which: string | Named, tab: InstanceTab = 'overview') =>
    tab === 'overview' ? `/instances/${wordOf(which)}` : `/instances/${wordOf(which)}/${tab}`,
  jobs: () => '/jobs',
  newJob: () => '/jobs/new',
  newJobOf: (image: string) => `/jobs/new?image=${encodeURIComponent(image)}`,
  /** The form for a new job, filled with the file of another one. */
  cloneOfJob: (name: string) => `/jobs/new?from=${encodeURIComponent(name)}`,
  job: (which: string | Named, tab: JobTab = 'overview') =>
    tab === 'overview' ? `/jobs/${wordOf(which)}` : `/jobs/${wordOf(which)}/${tab}`,
  jobLog: (name: string, task: string) => `${paths.job(name, 'logs')}?task=${encodeURIComponent(task)}`,
  queue: () => '/queue',
  images: () => '/images',
  cluster: () => '/cluster',
  settings: (section: SettingsSection = 'profile') => `/settings/${section}`,
  admin: (section: AdminSection = 'users') => `/admin/${section}`,
  tensorboard: (which: Named, folder: string) =>
    `${paths.instance(which, 'tensorboard')}?folder=${encodeURIComponent(folder)}`,
  /** A page that leads to an app at its own address: a link, so that it can be opened in another tab. */
  enter: (instance: string, app: string, folder?: string) => {
    const search = new URLSearchParams({ instance, app })
    if (folder !== undefined) search.set('folder', folder)
    return `/enter?${search}`
  },
} as const

/** Where to go after signing in: only ever a path of this very site. */
export function safeNext(next: string | undefined): string {
  return next && /^\/(?![/\\])/.test(next) && !next.startsWith('/login') ? next : paths.home()
}

/** Which app an address names. The instance is a slug, or an id where there is no user. */
export interface AppHost {
  app: string
  instance: string
  user?: string
}

/** Reads `lab--train--alice` or `lab--0190f2c3…`, as the hosts of apps are called; null if it is neither. */
export function readAppHost(host: string): AppHost | null {
  const [, app, instance, user] = /^([a-z0-9]+)--([a-z0-9](?:[a-z0-9]|-(?!-))*)(?:--(.+))?$/.exec(host) ?? []
  if (app === undefined || instance === undefined) return null
  return user === undefined ? { app, instance: `ins_${instance}` } : { app, instance, user }
}
