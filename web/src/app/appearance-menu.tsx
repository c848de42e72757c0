import { ActionIcon, Menu, useMantineColorScheme } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import { IconCheck, IconMoon, IconSun, IconSystem } from '../ui/icons'

export const SCHEMES = [
  { scheme: 'light', icon: IconSun },
  { scheme: 'dark', icon: IconMoon },
  { scheme: 'auto', icon: IconSystem },
] as const

export function AppearanceMenu() {
  const { t } = useTranslation()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const Icon = SCHEMES.find(({ scheme }) => scheme === colorScheme)?.icon ?? IconSystem
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t('appearance.label')}>
          <Icon size={20} stroke={1.75} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {SCHEMES.map(({ scheme, icon: ChoiceIcon }) => (
          <Menu.Item
            key={scheme}
            role="menuitemradio"
            aria-checked={scheme === colorScheme}
            leftSection={<ChoiceIcon size={16} />}
            rightSection={scheme === colorScheme ? <IconCheck size={16} /> : null}
            onClick={() => setColorScheme(scheme)}
          >
            {t(`appearance.${scheme}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
