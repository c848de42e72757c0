import { ActionIcon, Button, Group, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useThrottledCallback } from '@mantine/hooks'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { followLogs, type LogState, readLogs } from '../../../api/logs'
import type { Instance } from '../../../api/types'
import { IconArrowDown, IconDownload, IconSearch, IconUp } from '../../../ui/icons'
import { LogView } from '../../../ui/log-view'
import { LINE_LIMIT, type LogLines } from '../../../util/log-lines'
import { cutAtMatches } from '../../../util/log-search'
import { NotNow } from './not-now'

/** Of a log without end, what is still worth carrying away. */
const DOWNLOAD_LINES = 1_000_000

export function LogsTab({ instance }: { instance: Instance }) {
  if (!instance.actions.includes('logs')) return <NotNow instance={instance} action="logs" />
  const writing = instance.status.state === 'running' || instance.status.state === 'starting'
  // A restart begins another stream: what was followed before has ended.
  const since = instance.status.state === 'running' ? instance.status.since : ''
  return <Log key={`${instance.id}/${writing}/${since}`} instance={instance} writing={writing} />
}

interface Shown {
  text: string
  cut: boolean
}

function useLog(instance: string, writing: boolean) {
  const [shown, setShown] = useState<Shown>({ text: '', cut: false })
  const [state, setState] = useState<LogState>('connecting')
  const [error, setError] = useState<Error | null>(null)
  // A busy log has thousands of messages a second; the eye needs a few redraws.
  const show = useThrottledCallback(
    (lines: LogLines) => setShown({ text: lines.text(), cut: lines.cut }),
    150,
  )
  useEffect(() => {
    const become = (next: LogState, problem?: Error) => {
      setState(next)
      setError(problem ?? null)
    }
    if (writing) return followLogs(instance, show, become)
    const reading = new AbortController()
    readLogs(instance, reading.signal).then(
      (lines) => {
        show(lines)
        become('ended')
      },
      (problem: Error) => {
        if (!reading.signal.aborted) become('ended', problem)
      },
    )
    return () => reading.abort()
  }, [instance, writing, show])
  return { shown, state, error }
}

function Log({ instance, writing }: { instance: Instance; writing: boolean }) {
  const { t } = useTranslation(['streams', 'instances', 'common'])
  const { shown, state, error } = useLog(instance.id, writing)
  const [wrap, setWrap] = useState(true)
  const { find = '' } = useSearch({ strict: false })
  const [current, setCurrent] = useState(0)
  const found = useMemo(() => cutAtMatches(shown.text, find), [shown.text, find])
  const at = found.count === 0 ? undefined : Math.min(current, found.count - 1)
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {state === 'connecting' ? t('common:loading') : t(`logs.${state}`)}
          {shown.cut && ` · ${t('logs.cut', { count: LINE_LIMIT })}`}
        </Text>
        <Group gap="md">
          <LogSearch find={find} count={found.count} current={at} onCurrent={setCurrent} />
          <Switch
            size="xs"
            label={t('logs.wrap')}
            checked={wrap}
            onChange={(event) => setWrap(event.currentTarget.checked)}
          />
          <Button
            component="a"
            href={`/api/v1/instances/${instance.id}/logs?tail=${DOWNLOAD_LINES}`}
            download={`${instance.slug}.log`}
            size="xs"
            variant="default"
            leftSection={<IconDownload size={16} />}
          >
            {t('logs.download')}
          </Button>
        </Group>
      </Group>
      {error && <Trouble error={error} />}
      <LogView
        label={t('logs.label', { name: instance.name })}
        text={shown.text}
        wrap={wrap}
        pieces={find === '' ? undefined : found.pieces}
        current={at}
      />
    </Stack>
  )
}

interface SearchProps {
  find: string
  count: number
  current?: number
  onCurrent: (match: number) => void
}

/** What is searched for stands in the address, so that a link shows it too. */
function LogSearch({ find, count, current = 0, onCurrent }: SearchProps) {
  const { t } = useTranslation('streams')
  const navigate = useNavigate()
  const look = (text: string) => {
    onCurrent(0)
    void navigate({ to: '.', search: (before) => ({ ...before, find: text || undefined }), replace: true })
  }
  const step = (by: number) => count > 0 && onCurrent((current + by + count) % count)
  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        size="xs"
        aria-label={t('logs.find')}
        placeholder={t('logs.find')}
        value={find}
        spellCheck={false}
        leftSection={<IconSearch size={14} />}
        onChange={(event) => look(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) step(event.shiftKey ? -1 : 1)
        }}
      />
      {find !== '' && (
        <>
          <Text size="xs" c="dimmed" role="status" className="numbers" style={{ whiteSpace: 'nowrap' }}>
            {count === 0 ? t('logs.no_match') : t('logs.match', { current: current + 1, count })}
          </Text>
          <ActionIcon variant="subtle" aria-label={t('logs.previous')} onClick={() => step(-1)}>
            <IconUp size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" aria-label={t('logs.next')} onClick={() => step(1)}>
            <IconArrowDown size={16} />
          </ActionIcon>
        </>
      )}
    </Group>
  )
}
