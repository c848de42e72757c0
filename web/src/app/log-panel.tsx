import { ActionIcon, Anchor, Button, Group, Stack, Switch, Text, TextInput, Tooltip } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'

import { foundInLogAddress, LAST_LINE, type LogSource, readLogPart, wholeLogAddress } from '../api/logs'
import { IconArrowDown, IconDownload, IconSearch, IconUp } from '../ui/icons'
import { type LineLinks, LogView } from '../ui/log-view'
import { ReasonedButton } from '../ui/reasoned-button'
import { LINE_LIMIT } from '../util/log-lines'
import { cutAtMatches } from '../util/log-search'
import { Trouble } from './trouble'
import { lastOf, type NumberedPart, useLog, useLogPart } from './use-log'
import { useTyped } from './use-typed'

/** How long the counting of lines may take, in milliseconds. */
const COUNT_LIMIT = 60_000

interface Props {
  /** Keep it the same object while it is the same log. */
  source: LogSource
  /** More is being written: follow it. */
  writing: boolean
  label: string
  /** What a download is called. */
  file: string
}

/** What something has written and goes on to write, with a search and a download. */
export function LogPanel({ source, writing, label, file }: Props) {
  const { t } = useTranslation(['streams', 'common'])
  const { shown, state, error } = useLog(source, writing)
  const [wrap, setWrap] = useState(true)
  const { find = '', line } = useSearch({ strict: false })
  // The end of a long log says nothing of the numbers of its lines: what a link names is read by its number.
  const { part, error: partError } = useLogPart(source, shown.cut ? line : undefined)
  const links = useLineLinks(line, shown.cut && part === undefined)
  const [current, setCurrent] = useState(0)
  const text = part?.text ?? shown.text
  const found = useMemo(() => cutAtMatches(text, find), [text, find])
  const at = found.count === 0 ? undefined : Math.min(current, found.count - 1)
  return (
    <Stack gap="xs" flex={1} mih={0}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {part
            ? t('logs.part', { first: part.first, last: part.last })
            : state === 'connecting'
              ? t('common:loading')
              : t(`logs.${state}`)}
          {!part && shown.cut && ` · ${t('logs.cut', { count: LINE_LIMIT })}`}
        </Text>
        <Group gap="md">
          {part && <PartSteps part={part} />}
          {!part && shown.cut && <NumberLines source={source} />}
          <LogSearch
            find={find}
            count={found.count}
            current={at}
            everywhere={shown.cut ? foundInLogAddress(source, find) : undefined}
            onCurrent={setCurrent}
          />
          <Switch
            size="xs"
            label={t('logs.wrap')}
            checked={wrap}
            onChange={(event) => setWrap(event.currentTarget.checked)}
          />
          <Button
            component="a"
            href={wholeLogAddress(source)}
            download={file}
            size="xs"
            variant="default"
            leftSection={<IconDownload size={16} />}
          >
            {t('logs.download')}
          </Button>
        </Group>
      </Group>
      {(error ?? partError) && <Trouble error={error ?? partError} />}
      {part && line !== undefined && line > part.last && (
        <Text size="sm" role="status">
          {t('logs.no_such_line', { number: line })}
        </Text>
      )}
      <LogView
        label={label}
        wrap={wrap}
        pieces={found.pieces}
        first={part?.first}
        goesOn={part !== undefined}
        current={at}
        links={links}
      />
    </Stack>
  )
}

const atLine = (line: number | undefined) => (before: object) => ({ ...before, line })

/** The ways from a part of a long log to its neighbours, and back to what is written now. */
function PartSteps({ part }: { part: NumberedPart }) {
  const { t } = useTranslation('streams')
  const navigate = useNavigate()
  const go = (line: number | undefined) => void navigate({ to: '.', search: atLine(line), replace: true })
  return (
    <Group gap={4}>
      <ReasonedButton
        size="xs"
        variant="default"
        label={t('logs.earlier')}
        reason={part.first <= 1 ? t('logs.at_first') : undefined}
        onClick={() => go(part.first - 1)}
      />
      <ReasonedButton
        size="xs"
        variant="default"
        label={t('logs.later')}
        reason={part.more ? undefined : t('logs.at_last')}
        onClick={() => go(part.last + 1)}
      />
      <Button size="xs" variant="default" onClick={() => go(undefined)}>
        {t('logs.live_end')}
      </Button>
    </Group>
  )
}

/** Counts the lines of a long log, which is not done unasked: all of it has to be read for that. */
function NumberLines({ source }: { source: LogSource }) {
  const { t } = useTranslation('streams')
  const navigate = useNavigate()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => readLogPart(source, LAST_LINE, AbortSignal.timeout(COUNT_LIMIT)),
    onSuccess: (part) => navigate({ to: '.', search: atLine(lastOf(part)), replace: true }),
  })
  if (error) return <Trouble error={error} />
  return (
    <Tooltip label={t('logs.numbered_why')}>
      <Button size="xs" variant="default" loading={isPending} onClick={() => mutate()}>
        {t('logs.numbered')}
      </Button>
    </Tooltip>
  )
}

/** Links to lines, where their numbers are known. */
function useLineLinks(chosen: number | undefined, uncounted: boolean): LineLinks | undefined {
  const navigate = useNavigate()
  const router = useRouter()
  if (uncounted) return undefined
  return {
    chosen,
    href: (line) => router.buildLocation({ to: '.', search: atLine(line) }).href,
    onChoose: (line) => void navigate({ to: '.', search: atLine(line), replace: true }),
  }
}

interface SearchProps {
  find: string
  count: number
  current?: number
  /** There is more of the log than is searched: where all the lines with the text are. */
  everywhere?: string
  onCurrent: (match: number) => void
}

/** What is searched for stands in the address, so that a link shows it too. */
function LogSearch({ find, count, current = 0, everywhere, onCurrent }: SearchProps) {
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
            {everywhere && ` · ${t('logs.in_shown')}`}
          </Text>
          {everywhere && (
            <Anchor size="xs" href={everywhere} target="_blank" rel="noopener">
              {t('logs.everywhere')}
            </Anchor>
          )}
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
