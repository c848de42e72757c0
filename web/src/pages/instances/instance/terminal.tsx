import { Alert, Button, Group, Skeleton, Stack, Switch, Text, Tooltip } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { meQuery } from '../../../api/session'
import { newTerminalName, openTerminal, type TerminalState } from '../../../api/terminal'
import type { Instance } from '../../../api/types'
import { MONOSPACE } from '../../../theme'
import { IconPlus } from '../../../ui/icons'
import { KeyBar } from '../../../ui/key-bar'
import type { TermHandle, TermScreen } from '../../../ui/term-view'
import { never } from '../../../util/never'
import { paths } from '../../../util/path-builder'
import { NotNow } from './not-now'

const TermView = lazy(() => import('../../../ui/term-view').then((module) => ({ default: module.TermView })))

interface Props {
  instance: Instance
  terminal: string
}

export function TerminalTab({ instance, terminal }: Props) {
  if (!instance.actions.includes('terminal')) return <NotNow instance={instance} action="terminal" />
  // Another terminal, or the same name in another instance, is another screen.
  return <LiveTerminal key={`${instance.id}/${terminal}`} instance={instance} terminal={terminal} />
}

function LiveTerminal({ instance, terminal }: Props) {
  const { t } = useTranslation('streams')
  const cache = useQueryClient()
  const navigate = useNavigate()
  const [state, setState] = useState<TerminalState>({ at: 'connecting' })
  const [attempt, setAttempt] = useState(0)
  const [screenReader, setScreenReader] = useState(false)
  const view = useRef<TermHandle>(null)
  const toolbar = useRef<HTMLInputElement>(null)

  const attach = useCallback(
    (screen: TermScreen) =>
      openTerminal(instance.id, terminal, screen, (next) => {
        setState(next)
        // A refused WebSocket does not say why. If the session has ended, asking who we are leads to the sign-in page.
        if (next.at === 'lost') void cache.invalidateQueries({ queryKey: meQuery.queryKey })
      }),
    [cache, instance.id, terminal],
  )
  const openNew = () =>
    void navigate({ href: `${paths.instance(instance.name, 'terminal')}?terminal=${newTerminalName()}` })

  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {t(`terminal.state.${state.at === 'refused' ? 'ended' : state.at}`)}
        </Text>
        <Group gap="md">
          <Text size="xs" c="dimmed" visibleFrom="md">
            {t('terminal.leave')}
          </Text>
          <Tooltip label={t('terminal.screen_reader_help')}>
            <Switch
              ref={toolbar}
              size="xs"
              label={t('terminal.screen_reader')}
              checked={screenReader}
              onChange={(event) => setScreenReader(event.currentTarget.checked)}
            />
          </Tooltip>
        </Group>
      </Group>
      <Ending state={state} onNew={openNew} onRetry={() => setAttempt(attempt + 1)} />
      <Suspense fallback={<Skeleton className="after-a-moment" flex={1} />}>
        <div style={{ flex: 1, minHeight: 0 }}>
          <TermView
            key={attempt}
            ref={view}
            label={t('terminal.label', { name: instance.name })}
            fontFamily={MONOSPACE}
            attach={attach}
            screenReader={screenReader}
            onLeave={() => toolbar.current?.focus()}
          />
        </div>
      </Suspense>
      <KeyBar onKey={(text) => view.current?.type(text)} />
    </Stack>
  )
}

interface EndingProps {
  state: TerminalState
  onNew: () => void
  onRetry: () => void
}

/** What is to be said about a terminal that is not simply open. */
function Ending({ state, onNew, onRetry }: EndingProps) {
  const { t } = useTranslation('streams')
  switch (state.at) {
    case 'connecting':
    case 'open':
      return null
    case 'lost':
      return state.error ? <Trouble error={state.error} /> : null
    case 'refused':
      return <Trouble error={state.error} onRetry={onRetry} />
    case 'ended':
      return (
        <Alert role="status" color="gray" variant="light" p="xs">
          <Group justify="space-between">
            <Text size="sm">
              {'code' in state.exit
                ? t('terminal.exited', { code: state.exit.code })
                : t('terminal.killed', { signal: state.exit.signal })}
            </Text>
            <Button size="xs" leftSection={<IconPlus size={16} />} onClick={onNew}>
              {t('terminal.new')}
            </Button>
          </Group>
        </Alert>
      )
    default:
      return never(state)
  }
}
