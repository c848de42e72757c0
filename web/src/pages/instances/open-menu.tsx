import { ActionIcon, Button, Menu, Tooltip } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'

import { useWhyNot } from '../../app/why-not'
import type { Instance } from '../../api/types'
import { ActionButton } from '../../ui/action-button'
import {
  IconApps,
  IconChart,
  IconCode,
  IconDesktop,
  IconKey,
  IconNotebook,
  IconPort,
  IconSortDescending,
  IconTerminal,
} from '../../ui/icons'
import { paths } from '../../util/path-builder'

const DOORS = [
  { tab: 'lab', icon: IconNotebook },
  { tab: 'ide', icon: IconCode },
  { tab: 'terminal', icon: IconTerminal },
  { tab: 'tensorboard', icon: IconChart },
  { tab: 'desktop', icon: IconDesktop },
  { tab: 'ssh', icon: IconKey },
  { tab: 'ports', icon: IconPort },
] as const

/** All ways into a running instance. */
export function OpenMenu({ instance, compact }: { instance: Instance; compact?: boolean }) {
  const { t } = useTranslation(['instances', 'apps'])
  const navigate = useNavigate()
  const reason = useWhyNot(instance)('open')
  if (reason !== undefined) {
    return (
      <ActionButton
        label={t('action.open')}
        icon={IconApps}
        reason={reason}
        compact={compact}
        onClick={() => undefined}
      />
    )
  }
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        {compact ? (
          <Tooltip label={t('action.open')}>
            <ActionIcon variant="subtle" size="lg" aria-label={t('action.open')}>
              <IconApps size={20} stroke={1.75} />
            </ActionIcon>
          </Tooltip>
        ) : (
          <Button
            size="sm"
            leftSection={<IconApps size={18} stroke={1.75} />}
            rightSection={<IconSortDescending size={16} aria-hidden />}
          >
            {t('action.open')}
          </Button>
        )}
      </Menu.Target>
      <Menu.Dropdown>
        {DOORS.map(({ tab, icon: Icon }) => (
          <Menu.Item
            key={tab}
            leftSection={<Icon size={18} stroke={1.75} />}
            onClick={() => void navigate({ to: paths.instance(instance, tab) })}
          >
            {t(`apps:door.${tab}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
