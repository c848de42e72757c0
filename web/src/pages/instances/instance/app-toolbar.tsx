import { ActionIcon, Group, Text, Tooltip } from '@mantine/core'
import { type ComponentType, type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'

import type { AppName } from '../../../api/apps'
import { ConfirmDialog } from '../../../ui/confirm-dialog'
import { CopyButton } from '../../../ui/copy'
import { IconExternal, IconFullScreen, IconRestart, IconStop } from '../../../ui/icons'

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

interface EndProps {
  name: AppName
  busy: boolean
  onEnd: () => void
}

/** Ends an app's program, after a question: what is unsaved in it is lost. */
export function EndTool({ name, busy, onEnd }: EndProps) {
  const { t } = useTranslation('apps')
  const [asked, setAsked] = useState(false)
  const app = t(`app.${name}`)
  return (
    <>
      <Tool label={t('end.label', { app })} icon={IconStop} onClick={() => setAsked(true)} />
      <ConfirmDialog
        opened={asked}
        title={t('end.title', { app })}
        confirm={t('end.confirm')}
        busy={busy}
        onConfirm={() => {
          setAsked(false)
          onEnd()
        }}
        onClose={() => setAsked(false)}
      >
        <Text size="sm">{t('end.text')}</Text>
      </ConfirmDialog>
    </>
  )
}

interface Props {
  /** What stands on the left. */
  children?: ReactNode
  onReload: () => void
  /** Ends the app, where it runs. */
  end?: EndProps
  onFullScreen?: () => void
  /** A page of the console that leads to the app. */
  newTab: string
  /** The app's own address. */
  link?: string
}

/** What can be done with a framed app. */
export function AppToolbar({ children, onReload, end, onFullScreen, newTab, link }: Props) {
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
        {end && <EndTool {...end} />}
        {link && <CopyButton text={link} label={t('toolbar.copy_link')} />}
      </Group>
    </Group>
  )
}
