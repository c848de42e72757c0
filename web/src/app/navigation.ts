// Where the left side and the command palette lead.

import type { ComponentType } from 'react'

import type { Me } from '../api/types'
import {
  IconBox,
  IconCluster,
  IconHome,
  IconImages,
  IconJobs,
  IconQueue,
  IconSettings,
  IconShield,
} from '../ui/icons'
import { ADMIN_SECTIONS, type AdminSection, paths } from '../util/path-builder'

export interface Place {
  /** Its word in the translations. */
  key: 'home' | 'instances' | 'jobs' | 'queue' | 'images' | 'cluster' | 'settings' | 'admin'
  path: string
  /** Pages of it begin so. */
  below: string
  icon: ComponentType<{ size?: number; stroke?: number }>
}

const PLACES: readonly Place[] = [
  { key: 'home', path: paths.home(), below: paths.home(), icon: IconHome },
  { key: 'instances', path: paths.instances(), below: paths.instances(), icon: IconBox },
  { key: 'jobs', path: paths.jobs(), below: paths.jobs(), icon: IconJobs },
  { key: 'queue', path: paths.queue(), below: paths.queue(), icon: IconQueue },
  { key: 'images', path: paths.images(), below: paths.images(), icon: IconImages },
  { key: 'cluster', path: paths.cluster(), below: paths.cluster(), icon: IconCluster },
  { key: 'settings', path: paths.settings(), below: '/settings', icon: IconSettings },
]

const ADMIN: Place = { key: 'admin', path: paths.admin(), below: '/admin', icon: IconShield }

/** The key that leads there, after `g`. */
export const LETTERS: Readonly<Record<Place['key'], string>> = {
  home: 'h',
  instances: 'i',
  jobs: 'j',
  queue: 'q',
  images: 'm',
  cluster: 'c',
  settings: 's',
  admin: 'a',
}

/** The gateway decides who may; a page that only refuses is not worth a line. */
export function placesOf(me: Me): readonly Place[] {
  return me.role === 'user' ? PLACES : [...PLACES, ADMIN]
}

/** What a leader can see of the administration; the gateway refuses the rest. */
const FOR_LEADERS: readonly AdminSection[] = ['users', 'instances', 'jobs', 'usage']

export function adminSectionsOf({ role }: Me): readonly AdminSection[] {
  if (role === 'user') return []
  return role === 'admin' ? ADMIN_SECTIONS : FOR_LEADERS
}

export function isAt(place: Place, pathname: string): boolean {
  return place.below === '/' ? pathname === '/' : pathname.startsWith(place.below)
}
