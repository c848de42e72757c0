import '@mantine/spotlight/styles.css'

import { useMantineColorScheme } from '@mantine/core'
import { createSpotlight, Spotlight, type SpotlightActionData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { instancesQuery } from '../api/instances'
import { jobsQuery } from '../api/jobs'
import type { Me } from '../api/types'
import { currentLanguage, LANGUAGES } from '../i18n/language'
import { ADMIN, COMMANDS, PLACES, SETTINGS } from '../i18n/keywords'
import { TensorboardDialog } from '../pages/instances/tensorboard-dialog'
import {
  IconBox,
  IconChart,
  IconHelp,
  IconJobs,
  IconKeyboard,
  IconLanguage,
  IconLogout,
  IconPlus,
  IconSearch,
} from '../ui/icons'
import { paths, SETTINGS_SECTIONS } from '../util/path-builder'
import { SCHEMES } from './appearance-menu'
import { adminSectionsOf, type Place, placesOf } from './navigation'
import { useChooseLanguage } from './own-language'
import { useSignOut } from './use-sign-out'

const [store, palette] = createSpotlight()

interface Props {
  me: Me
  /** How often it was asked for. */
  asked: number
  /** Shows the keys. */
  onList: () => void
}

/** Everything that can be gone to or done from anywhere, by a few letters of its name. */
export function CommandPalette({ me, asked, onList }: Props) {
  const { t } = useTranslation()
  const [board, setBoard] = useState(false)
  useEffect(() => {
    if (asked > 0) palette.open()
  }, [asked])
  const go = useGoing(me)
  const work = useWork()
  const commands = useCommands(() => setBoard(true), onList)
  const look = useLook()
  return (
    <>
      <Spotlight
        store={store}
        shortcut={null}
        actions={[go, ...work, commands, look]}
        nothingFound={t('palette.nothing')}
        highlightQuery
        scrollable
        maxHeight={420}
        searchProps={{
          leftSection: <IconSearch size={20} />,
          placeholder: t('palette.search'),
          'aria-label': t('palette.search'),
        }}
      />
      <TensorboardDialog opened={board} onClose={() => setBoard(false)} />
    </>
  )
}

interface Group {
  group: string
  actions: SpotlightActionData[]
}

const icon = (Icon: Place['icon']) => <Icon size={20} stroke={1.75} />

function useTo() {
  const navigate = useNavigate()
  return (path: string) => () => void navigate({ to: path })
}

/** The pages. */
function useGoing(me: Me): Group {
  const { t } = useTranslation(['common', 'admin', 'help', 'settings'])
  const to = useTo()
  return {
    group: t('palette.go_to'),
    actions: [
      ...placesOf(me).map((place) => ({
        id: place.path,
        label: t(`place.${place.key}`),
        keywords: PLACES[place.key],
        leftSection: icon(place.icon),
        onClick: to(place.path),
      })),
      {
        id: paths.help(),
        label: t('help:title'),
        keywords: COMMANDS.help,
        leftSection: icon(IconHelp),
        onClick: to(paths.help()),
      },
      ...SETTINGS_SECTIONS.map((section) => ({
        id: `settings/${section}`,
        label: `${t('place.settings')} · ${t(`settings:section.${section}`)}`,
        keywords: SETTINGS[section],
        onClick: to(paths.settings(section)),
      })),
      ...adminSectionsOf(me).map((section) => ({
        id: `admin/${section}`,
        label: `${t('place.admin')} · ${t(`admin:section.${section}`)}`,
        keywords: ADMIN[section],
        onClick: to(paths.admin(section)),
      })),
    ],
  }
}

/** One's instances and jobs, and new ones. */
function useWork(): Group[] {
  const { t } = useTranslation(['instances', 'jobs'])
  const to = useTo()
  const { data: instances = [] } = useQuery(instancesQuery)
  const { data: jobs = [] } = useQuery(jobsQuery('own'))
  return [
    {
      group: t('title'),
      actions: [
        {
          id: 'new-instance',
          label: t('create'),
          keywords: COMMANDS.newInstance,
          leftSection: icon(IconPlus),
          onClick: to(paths.newInstance()),
        },
        ...instances.map((instance) => ({
          id: instance.id,
          label: instance.name,
          description: t(`state.${instance.status.state}`),
          leftSection: icon(IconBox),
          onClick: to(paths.instance(instance)),
        })),
      ],
    },
    {
      group: t('jobs:title'),
      actions: [
        {
          id: 'new-job',
          label: t('jobs:submit'),
          keywords: COMMANDS.newJob,
          leftSection: icon(IconPlus),
          onClick: to(paths.newJob()),
        },
        ...jobs.map((job) => ({
          id: job.id,
          label: job.name,
          description: t(`jobs:state.${job.status.state}`),
          leftSection: icon(IconJobs),
          onClick: to(paths.job(job)),
        })),
      ],
    },
  ]
}

function useCommands(onBoard: () => void, onList: () => void): Group {
  const { t } = useTranslation(['common', 'apps', 'session'])
  const leave = useSignOut()
  return {
    group: t('palette.commands'),
    actions: [
      {
        id: 'new-tensorboard',
        label: t('apps:own_board.button'),
        keywords: COMMANDS.tensorboard,
        leftSection: icon(IconChart),
        onClick: onBoard,
      },
      {
        id: 'shortcuts',
        label: t('shortcuts.title'),
        keywords: COMMANDS.shortcuts,
        leftSection: icon(IconKeyboard),
        onClick: onList,
      },
      {
        id: 'sign-out',
        label: t('session:sign_out'),
        keywords: COMMANDS.signOut,
        leftSection: icon(IconLogout),
        onClick: leave,
      },
    ],
  }
}

function useLook(): Group {
  const { t } = useTranslation()
  const { setColorScheme } = useMantineColorScheme()
  const chooseLanguage = useChooseLanguage()
  return {
    group: t('palette.look'),
    actions: [
      ...LANGUAGES.filter(({ code }) => code !== currentLanguage()).map(({ code, name }) => ({
        id: code,
        label: name,
        keywords: COMMANDS.language,
        leftSection: icon(IconLanguage),
        onClick: () => void chooseLanguage(code),
      })),
      ...SCHEMES.map(({ scheme, icon: Icon }) => ({
        id: scheme,
        label: `${t('appearance.label')} · ${t(`appearance.${scheme}`)}`,
        keywords: COMMANDS.appearance,
        leftSection: <Icon size={20} stroke={1.75} />,
        onClick: () => setColorScheme(scheme),
      })),
    ],
  }
}
