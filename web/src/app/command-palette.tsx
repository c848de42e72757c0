import '@mantine/spotlight/styles.css'

import { useMantineColorScheme } from '@mantine/core'
import { createSpotlight, Spotlight, type SpotlightActionData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'

import { instancesQuery } from '../api/instances'
import { jobsQuery } from '../api/jobs'
import type { Me } from '../api/types'
import { currentLanguage, LANGUAGES } from '../i18n/language'
import { IconBox, IconHelp, IconJobs, IconLanguage, IconPlus, IconSearch } from '../ui/icons'
import { paths, SETTINGS_SECTIONS } from '../util/path-builder'
import { SCHEMES } from './appearance-menu'
import { placesOf } from './navigation'
import { useChooseLanguage } from './own-language'

const [store, palette] = createSpotlight()

/** Everything that can be gone to or done from anywhere, by a few letters of its name. */
export function CommandPalette({ me, asked }: { me: Me; asked: number }) {
  const { t } = useTranslation(['common', 'instances', 'settings'])
  useEffect(() => {
    if (asked > 0) palette.open()
  }, [asked])
  return (
    <Spotlight
      store={store}
      shortcut={null}
      actions={useGroups(me)}
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
  )
}

interface Group {
  group: string
  actions: SpotlightActionData[]
}

function useGroups(me: Me): Group[] {
  const { t } = useTranslation(['common', 'help', 'instances', 'jobs', 'settings'])
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const chooseLanguage = useChooseLanguage()
  const { data: instances = [] } = useQuery(instancesQuery)
  const { data: jobs = [] } = useQuery(jobsQuery('own'))
  const to = (path: string) => () => void navigate({ to: path })
  return [
    {
      group: t('palette.go_to'),
      actions: [
        ...placesOf(me).map((place) => ({
          id: place.path,
          label: t(`place.${place.key}`),
          leftSection: <place.icon size={20} stroke={1.75} />,
          onClick: to(place.path),
        })),
        {
          id: paths.help(),
          label: t('help:title'),
          leftSection: <IconHelp size={20} stroke={1.75} />,
          onClick: to(paths.help()),
        },
        ...SETTINGS_SECTIONS.map((section) => ({
          id: paths.settings(section),
          label: `${t('place.settings')} · ${t(`settings:section.${section}`)}`,
          onClick: to(paths.settings(section)),
        })),
      ],
    },
    {
      group: t('instances:title'),
      actions: [
        {
          id: 'new-instance',
          label: t('instances:create'),
          leftSection: <IconPlus size={20} stroke={1.75} />,
          onClick: to(paths.newInstance()),
        },
        ...instances.map((instance) => ({
          id: instance.id,
          label: instance.name,
          description: t(`instances:state.${instance.status.state}`),
          leftSection: <IconBox size={20} stroke={1.75} />,
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
          leftSection: <IconPlus size={20} stroke={1.75} />,
          onClick: to(paths.newJob()),
        },
        ...jobs.map((job) => ({
          id: job.id,
          label: job.name,
          description: t(`jobs:state.${job.status.state}`),
          leftSection: <IconJobs size={20} stroke={1.75} />,
          onClick: to(paths.job(job)),
        })),
      ],
    },
    {
      group: t('palette.look'),
      actions: [
        ...LANGUAGES.filter(({ code }) => code !== currentLanguage()).map(({ code, name }) => ({
          id: code,
          label: name,
          leftSection: <IconLanguage size={20} stroke={1.75} />,
          onClick: () => void chooseLanguage(code),
        })),
        ...SCHEMES.map(({ scheme, icon: Icon }) => ({
          id: scheme,
          label: `${t('appearance.label')} · ${t(`appearance.${scheme}`)}`,
          leftSection: <Icon size={20} stroke={1.75} />,
          onClick: () => setColorScheme(scheme),
        })),
      ],
    },
  ]
}
