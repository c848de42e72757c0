import { useLocalStorage } from '@mantine/hooks'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { Suspense, useState } from 'react'

import type { Me } from '../api/types'
import { useKeys } from '../ui/use-keys'
import { later } from '../util/later'
import { paths } from '../util/path-builder'
import { LETTERS, placesOf } from './navigation'

/** Nobody who does not ask for it pays for it. */
const ShortcutList = later(async () => ({ default: (await import('./shortcut-list')).ShortcutList }))

interface Props {
  me: Me
  listed: boolean
  onSearch: () => void
  onList: (listed: boolean) => void
}

/** Single keys for those who like them, and the list of them. Who uses speech input can turn them off. */
export function Shortcuts({ me, listed, onSearch, onList }: Props) {
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const [on, setOn] = useLocalStorage({ key: 'berth.single-keys', defaultValue: true })
  const [seen, setSeen] = useState(listed)
  if (listed && !seen) setSeen(true)
  const places = placesOf(me)
  const create = pathname.startsWith(paths.jobs()) ? paths.newJob() : paths.newInstance()
  useKeys(
    {
      '/': onSearch,
      '?': () => onList(true),
      c: () => void navigate({ to: create }),
      ...Object.fromEntries(
        places.map(({ key, path }) => [`g ${LETTERS[key]}`, () => void navigate({ to: path })]),
      ),
    },
    on,
  )
  return (
    seen && (
      <Suspense>
        <ShortcutList
          opened={listed}
          places={places}
          on={on}
          onSwitch={setOn}
          onClose={() => onList(false)}
        />
      </Suspense>
    )
  )
}
