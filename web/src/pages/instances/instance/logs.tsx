import { Button, Group, Stack, Switch, Text } from '@mantine/core'
import { useThrottledCallback } from '@mantine/hooks'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { Trouble } from '../../../app/trouble'
import { followLogs, type LogState, readLogs } from '../../../api/logs'
import type { Instance } from '../../../api/types'
import { IconDownload } from '../../../ui/icons'
import { LogView } from '../../../ui/log-view'
import { LINE_LIMIT, type LogLines } from '../../../util/log-lines'
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
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {state === 'connecting' ? t('common:loading') : t(`logs.${state}`)}
          {shown.cut && ` · ${t('logs.cut', { count: LINE_LIMIT })}`}
        </Text>
        <Group gap="md">
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
      <LogView label={t('logs.label', { name: instance.name })} text={shown.text} wrap={wrap} />
    </Stack>
  )
}
