import { ActionIcon, Group, Tooltip } from '@mantine/core'
import type { ComponentType, ReactNode } from 'react'
import { useTranslation } from 'react-i18next'

import { CopyButton } from '../../../ui/copy'
import { IconExternal, IconFullScreen, IconRestart } from '../../../ui/icons'

interface ToolProps {
  label: string
  icon: ComponentType<{ size?: number; stroke?: number }>
  onClick: () => void
  /** Why it cannot be done now. */
  reason?: string
}

export function Tool({ label, icon: Icon, onClick, reason }: ToolProps) {
  const not = reason !== undefined || undefined
  return (
    <Tooltip label={reason ?? label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={label}
        aria-disabled={not}
        data-disabled={not}
        onClick={() => not ?? onClick()}
      >
        <Icon size={18} stroke={1.75} />
      </ActionIcon>
    </Tooltip>
  )
}

interface Props {
  /** What stands on the left. */
  children?: ReactNode
  onReload: () => void
  onFullScreen?: () => void
  /** A page of the console that leads to the app. */
  newTab: string
  /** The app's own address. */
  link?: string
}

/** What can be done with a framed app. */
export function AppToolbar({ children, onReload, onFullScreen, newTab, link }: Props) {
  const { t } = useTranslation('apps')
  return (
    <Group justify="space-between" gap="xs">
      <div>{children}</div>
      <Group gap={4} role="toolbar" aria-label={t('toolbar.label')}>
        <Tool label={t('toolbar.reload')} icon={IconRestart} onClick={onReload} />
        {onFullScreen && (
          <Tool label={t('toolbar.full_screen')} icon={IconFullScreen} onClick={onFullScreen} />
        )}
        <Tooltip label={t('toolbar.new_tab')}>
          <ActionIcon
            component="a"
            href={newTab}
            target="_blank"
            rel="noopener"
            variant="subtle"
            color="gray"
            aria-label={t('toolbar.new_tab')}
          >
            <IconExternal size={18} stroke={1.75} />
          </ActionIcon>
        </Tooltip>
        {link && <CopyButton text={link} label={t('toolbar.copy_link')} />}
      </Group>
    </Group>
  )
}
