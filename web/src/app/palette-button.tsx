import { ActionIcon, Kbd, Tooltip } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'

import type { Me } from '../api/types'
import { IconSearch } from '../ui/icons'
import { later } from '../util/later'
import { Shortcuts } from './shortcuts'

// Few open it, so few load it.
const CommandPalette = later(async () => ({ default: (await import('./command-palette')).CommandPalette }))

/** Opens the command palette: by Ctrl K, by `/`, or by hand. */
export function PaletteButton({ me }: { me: Me }) {
  const { t } = useTranslation()
  // Counted and not yes or no: every press opens it anew, however it was closed.
  const [asked, setAsked] = useState(0)
  const open = () => setAsked((before) => before + 1)
  useHotkeys([['mod+K', open]], [], true)
  const [listed, setListed] = useState(false)
  return (
    <>
      <Tooltip
        label={
          <>
            {t('palette.open')} <Kbd size="xs">{t('palette.keys')}</Kbd>
          </>
        }
      >
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('palette.open')} onClick={open}>
          <IconSearch size={20} stroke={1.75} />
        </ActionIcon>
      </Tooltip>
      {asked > 0 && (
        <Suspense>
          <CommandPalette me={me} asked={asked} onList={() => setListed(true)} />
        </Suspense>
      )}
      <Shortcuts me={me} listed={listed} onSearch={open} onList={setListed} />
    </>
  )
}
