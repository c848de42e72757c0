import { ActionIcon, Button, Group, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useThrottledCallback } from '@mantine/hooks'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { followLogs, logAddress, type LogSource, type LogState, readLogs } from '../api/logs'
import { IconArrowDown, IconDownload, IconSearch, IconUp } from '../ui/icons'
import { LogView } from '../ui/log-view'
import { LINE_LIMIT, type LogLines } from '../util/log-lines'
import { cutAtMatches } from '../util/log-search'
import { Trouble } from './trouble'
import { useTyped } from './use-typed'

/** Of a log without end, what is still worth carrying away. */
const DOWNLOAD_LINES = 1_000_000

interface Props {
  /** Keep it the same object while it is the same log. */
  source: LogSource
  /** More is being written: follow it. */
  writing: boolean
  label: string
  /** What a download is called. */
  file: string
}

interface Shown {
  text: string
  cut: boolean
}

function useLog(source: LogSource, writing: boolean) {
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
    if (writing) return followLogs(source, show, become)
    const reading = new AbortController()
    readLogs(source, reading.signal).then(
      (lines) => {
        show(lines)
        become('ended')
      },
      (problem: Error) => {
        if (!reading.signal.aborted) become('ended', problem)
      },
    )
    return () => reading.abort()
  }, [source, writing, show])
  return { shown, state, error }
}

/** What something has written and goes on to write, with a search and a download. */
export function LogPanel({ source, writing, label, file }: Props) {
  const { t } = useTranslation(['streams', 'common'])
  const { shown, state, error } = useLog(source, writing)
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
            href={logAddress(source, DOWNLOAD_LINES)}
            download={file}
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
        label={label}
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
  const [typed, type] = useTyped(find, look)
  const step = (by: number) => count > 0 && onCurrent((current + by + count) % count)
  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        size="xs"
        aria-label={t('logs.find')}
        placeholder={t('logs.find')}
        value={typed}
        spellCheck={false}
        leftSection={<IconSearch size={14} />}
        onChange={(event) => type(event.currentTarget.value)}
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
