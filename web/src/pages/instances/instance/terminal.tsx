import { Alert, Button, Group, Skeleton, Stack, Switch, Text, Tooltip } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Suspense, useCallback, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { meQuery } from '../../../api/session'
import { openTerminal, terminalsQuery, type TerminalState } from '../../../api/terminal'
import type { Instance } from '../../../api/types'
import { MONOSPACE } from '../../../theme'
import { IconRestart } from '../../../ui/icons'
import { KeyBar } from '../../../ui/key-bar'
import type { TermHandle, TermScreen } from '../../../ui/term-view'
import { later } from '../../../util/later'
import { never } from '../../../util/never'
import { NotNow } from './not-now'
import { TerminalStrip } from './terminal-strip'

const TermView = later(() => import('../../../ui/term-view').then((module) => ({ default: module.TermView })))

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
  const [state, setState] = useState<TerminalState>({ at: 'connecting' })
  const [attempt, setAttempt] = useState(0)
  const [screenReader, setScreenReader] = useState(false)
  const view = useRef<TermHandle>(null)
  const toolbar = useRef<HTMLInputElement>(null)

  const attach = useCallback(
    (screen: TermScreen) =>
      openTerminal(instance.id, terminal, screen, (next) => {
        setState(next)
        if (next.at === 'open' || next.at === 'ended') {
          void cache.invalidateQueries({ queryKey: terminalsQuery(instance.id).queryKey })
        }
        // A refused WebSocket does not say why. If the session has ended, asking who we are leads to the sign-in page.
        if (next.at === 'lost') void cache.invalidateQueries({ queryKey: meQuery.queryKey })
      }),
    [cache, instance.id, terminal],
  )

  return (
    <Stack gap="xs" flex={1} mih={0}>
      <TerminalStrip instance={instance} terminal={terminal} />
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
      <Ending state={state} onAgain={() => setAttempt(attempt + 1)} />
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
  /** Connects anew; a shell that has ended is begun again. */
  onAgain: () => void
}

/** What is to be said about a terminal that is not simply open. */
function Ending({ state, onAgain }: EndingProps) {
  const { t } = useTranslation('streams')
  switch (state.at) {
    case 'connecting':
    case 'open':
      return null
    case 'lost':
      return state.error ? <Trouble error={state.error} /> : null
    case 'refused':
      return <Trouble error={state.error} onRetry={onAgain} />
    case 'ended':
      return (
        <Alert role="status" color="gray" variant="light" p="xs">
          <Group justify="space-between">
            <Text size="sm">
              {'code' in state.exit
                ? t('terminal.exited', { code: state.exit.code })
                : t('terminal.killed', { signal: state.exit.signal })}
            </Text>
            <Button size="xs" leftSection={<IconRestart size={16} />} onClick={onAgain}>
              {t('terminal.again')}
            </Button>
          </Group>
        </Alert>
      )
    default:
      return never(state)
  }
}
