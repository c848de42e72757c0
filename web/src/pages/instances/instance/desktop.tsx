import { Box, Button, Group, Popover, SegmentedControl, Skeleton, Stack, Text, Textarea } from '@mantine/core'
import { useFullscreenElement, useMediaQuery } from '@mantine/hooks'
import { Suspense, useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { openPort } from '../../../api/apps'
import type { ApiError } from '../../../api/client'
import type { Instance } from '../../../api/types'
import type { DesktopHandle, DesktopSize } from '../../../ui/desktop-view'
import { IconClipboard, IconFullScreen, IconKeyboard } from '../../../ui/icons'
import { Backoff } from '../../../util/backoff'
import { later } from '../../../util/later'
import { AppStart } from './app-start'
import { EndTool, Tool } from './app-toolbar'
import { NotNow } from './not-now'
import { type UsedApp, useApp } from './use-app'

const DesktopView = later(() =>
  import('../../../ui/desktop-view').then((module) => ({ default: module.DesktopView })),
)

const SIZES: readonly DesktopSize[] = ['resize', 'scale', 'original']

/** The instance's screen. Its programs live on when nobody looks. */
export function DesktopTab({ instance }: { instance: Instance }) {
  if (!instance.actions.includes('open')) return <NotNow instance={instance} action="open" />
  const since = instance.status.state === 'running' ? instance.status.since : ''
  return <Desktop key={`${instance.id}/${since}`} instance={instance} />
}

function Desktop({ instance }: { instance: Instance }) {
  const used = useApp(instance.id, 'desktop')
  const { app } = used
  if (app?.state !== 'ready' || typeof app.port !== 'number') return <AppStart name="desktop" used={used} />
  return <Screen instance={instance} port={app.port} used={used} />
}

type Line = 'connecting' | 'open' | 'lost'

interface ScreenProps {
  instance: Instance
  port: number
  used: UsedApp
}

function Screen({ instance, port, used }: ScreenProps) {
  const { t } = useTranslation('apps')
  const wide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  const { ref: full, toggle } = useFullscreenElement<HTMLDivElement>()
  const view = useRef<DesktopHandle>(null)
  const tools = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState<DesktopSize>(wide ? 'resize' : 'scale')
  const [copied, setCopied] = useState('')
  const [error, setError] = useState<ApiError | null>(null)
  const { line, attempt, opened, lost } = useLine(used.look)

  const connect = useCallback(() => openPort(instance.id, port, setError), [instance.id, port])
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {t(`desktop.${line}`)}
        </Text>
        <Group gap="xs" ref={tools} role="toolbar" aria-label={t('toolbar.label')} tabIndex={-1}>
          <Text size="xs" c="dimmed" visibleFrom="lg">
            {t('desktop.leave')}
          </Text>
          <SegmentedControl
            size="xs"
            aria-label={t('desktop.size')}
            value={size}
            onChange={setSize}
            data={SIZES.map((value) => ({ value, label: t(`desktop.size_${value}`) }))}
          />
          <ClipboardPanel
            copied={copied}
            reason={line === 'open' ? undefined : t(`desktop.${line}`)}
            onSend={(text) => {
              view.current?.paste(text)
              view.current?.focus()
            }}
          />
          <Tool
            label={t('desktop.ctrl_alt_del')}
            icon={IconKeyboard}
            reason={line === 'open' ? undefined : t(`desktop.${line}`)}
            onClick={() => view.current?.ctrlAltDel()}
          />
          <Tool label={t('toolbar.full_screen')} icon={IconFullScreen} onClick={() => void toggle()} />
          <EndTool name="desktop" busy={used.busy} onEnd={() => used.act('stop')} />
        </Group>
      </Group>
      {error && line === 'lost' && <Trouble error={error} />}
      <Suspense fallback={<Skeleton className="after-a-moment" flex={1} />}>
        <div ref={full} style={{ display: 'flex', flex: 1, minHeight: 0 }}>
          <DesktopView
            key={attempt}
            ref={view}
            label={t('desktop.label', { name: instance.name })}
            size={size}
            connect={connect}
            onConnected={() => {
              setError(null)
              opened()
            }}
            onLost={lost}
            onCopied={setCopied}
            onLeave={() => tools.current?.focus()}
          />
        </div>
      </Suspense>
    </Stack>
  )
}

/** The state of the connection; a lost one is tried again, ever less often. */
function useLine(look: () => void) {
  const [line, setLine] = useState<Line>('connecting')
  const [attempt, setAttempt] = useState(0)
  const backoff = useRef(new Backoff())
  const retry = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(retry.current), [])
  const opened = () => {
    backoff.current.reset()
    setLine('open')
  }
  const lost = () => {
    setLine('lost')
    retry.current = setTimeout(() => {
      look()
      setAttempt((before) => before + 1)
    }, backoff.current.next())
  }
  return { line, attempt, opened, lost }
}

interface ClipboardProps {
  copied: string
  reason?: string
  onSend: (text: string) => void
}

/** The desktop's clipboard, for browsers that do not let pages read one's own. */
function ClipboardPanel({ copied, reason, onSend }: ClipboardProps) {
  const { t } = useTranslation('apps')
  const [opened, setOpened] = useState(false)
  const [text, setText] = useState('')
  const [shown, setShown] = useState(copied)
  if (shown !== copied) {
    setShown(copied)
    setText(copied)
  }
  return (
    <Popover opened={opened} onChange={setOpened} width={320} position="bottom-end" withArrow trapFocus>
      <Popover.Target>
        <Box>
          <Tool
            label={t('desktop.clipboard')}
            icon={IconClipboard}
            reason={reason}
            onClick={() => setOpened(!opened)}
          />
        </Box>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <Textarea
            label={t('desktop.clipboard')}
            description={t('desktop.clipboard_help')}
            autosize
            minRows={4}
            maxRows={12}
            value={text}
            data-autofocus
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button
            size="xs"
            onClick={() => {
              onSend(text)
              setOpened(false)
            }}
          >
            {t('desktop.clipboard_send')}
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
