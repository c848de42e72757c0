import { Badge, Button, Code, Group, Stack, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'

import { type AuditFilter, auditQuery } from '../api/audit'
import type { AuditEntry } from '../api/types'
import { LoadingRows } from '../ui/loading'
import { Records } from '../ui/records'
import { TimeAgo } from '../ui/time-ago'
import { Trouble } from './trouble'

interface Props {
  whose: 'everyones' | 'own'
  filter: AuditFilter
  /** All of it is about one thing, which need not be named in every line. */
  about?: boolean
}

/** The lines of the operation log, newest first, with a button for older ones. */
export function AuditList({ whose, filter, about }: Props) {
  const { t } = useTranslation('admin')
  const lines = useInfiniteQuery(auditQuery(whose, filter))
  const rows = lines.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <Stack>
      {lines.error && <Trouble error={lines.error} onRetry={() => void lines.refetch()} />}
      {lines.isPending && <LoadingRows rows={6} height={40} />}
      {lines.data && rows.length === 0 && <Text c="dimmed">{t('audit.none')}</Text>}
      {rows.length > 0 && (
        <Records
          label={t('audit.title')}
          rows={rows}
          rowId={(line) => String(line.id)}
          heading="act"
          columns={[
            { id: 'act', header: t('audit.act'), cell: (line) => <Act line={line} /> },
            // Of something of one's own it is told who did it: that may have been somebody else.
            ...(whose === 'own' && !about
              ? []
              : [
                  {
                    id: 'actor',
                    header: t('audit.actor'),
                    cell: (line: AuditEntry) => <Words text={line.actor} />,
                  },
                ]),
            ...(about
              ? []
              : [
                  {
                    id: 'object',
                    header: t('audit.object'),
                    cell: (line: AuditEntry) => <Thing line={line} />,
                  },
                ]),
            {
              id: 'details',
              header: t('audit.details'),
              cell: (line) => <Details line={line} />,
            },
            { id: 'source', header: t('audit.source'), cell: (line) => <Source address={line.source} /> },
            { id: 'at', header: t('audit.at'), cell: (line) => <TimeAgo at={line.at} /> },
          ]}
        />
      )}
      {lines.hasNextPage && (
        <Group justify="center">
          <Button
            variant="default"
            loading={lines.isFetchingNextPage}
            onClick={() => void lines.fetchNextPage()}
          >
            {t('audit.older')}
          </Button>
        </Group>
      )}
    </Stack>
  )
}

function Act({ line }: { line: AuditEntry }) {
  const { t } = useTranslation('admin')
  return (
    <Group gap="xs">
      <Text size="sm" fw={600} title={line.act}>
        {t(`act.${line.act.replaceAll('.', '_')}`, { defaultValue: line.act })}
      </Text>
      {line.result === 'refused' && (
        <Badge size="sm" color="red" variant="light" tt="none">
          {t('audit.refused')}
        </Badge>
      )}
    </Group>
  )
}

function Words({ text }: { text?: string }) {
  return (
    <Text size="sm" className="breakable">
      {text}
    </Text>
  )
}

/** Short ones stay in one piece; of IPv6 that would take too much room. */
function Source({ address = '' }: { address?: string }) {
  return (
    <Text
      size="sm"
      className="breakable"
      style={address.includes(':') ? undefined : { whiteSpace: 'nowrap' }}
    >
      {address}
    </Text>
  )
}

/** What it was done to: by its name where it had one, since an id says nothing to people. */
function Thing({ line: { object, details } }: { line: AuditEntry }) {
  return (
    <Stack gap={0}>
      <Words text={details?.name ?? object} />
      {details?.name !== undefined && (
        <Text size="xs" c="dimmed" className="breakable">
          {object}
        </Text>
      )}
    </Stack>
  )
}

function Details({ line: { details = {} } }: { line: AuditEntry }) {
  const others = Object.entries(details).filter(([key]) => key !== 'name')
  if (others.length === 0) return null
  return (
    <Stack gap={2} align="flex-start">
      {others.map(([key, value]) => (
        <Code key={key} className="breakable">{`${key}=${value}`}</Code>
      ))}
    </Stack>
  )
}
