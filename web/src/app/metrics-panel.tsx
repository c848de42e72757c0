import { Button, Group, SegmentedControl, SimpleGrid, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'

import { POINTS, samplesQuery, type SampleSource } from '../api/samples'
import type { Sample } from '../api/types'
import type { Line } from '../ui/chart'
import { IconDownload } from '../ui/icons'
import { LoadingRows } from '../ui/loading'
import { formatBytes, formatExact } from '../util/format'
import { later } from '../util/later'
import { DEFAULT_RANGE, type MetricsRange, RANGES } from '../util/metrics-range'
import { columnsOf, csvOf, type Measure, stepOf } from '../util/sample-columns'
import { saveFile } from '../util/save-file'
import { Trouble } from './trouble'

const Chart = later(async () => ({ default: (await import('../ui/chart')).Chart }))

interface Props {
  source: SampleSource
  /** More are being taken. */
  taking: boolean
  /** When it ended: the last that it did is shown, however long ago that is. */
  end?: string
  /** What it was given of each, so that the scale shows how near the limit is. */
  limits: { cpus?: number; memoryBytes?: number; gpus: number }
  /** What a download is called, without its ending. */
  file: string
}

interface Plot {
  key: 'gpu' | 'gpu_memory' | 'cpu' | 'memory' | 'disk' | 'network'
  measures: readonly Measure[]
  most?: number
  format: (value: number) => string
}

/** A scale of nothing at all would say the same number at each of its marks. */
const LEAST_RATE = 1024

const rate = (bytes: number) => `${formatBytes(bytes)}/s`

function plotsFor({ cpus, memoryBytes, gpus }: Props['limits']): Plot[] {
  const plots: Plot[] = [
    { key: 'gpu', measures: ['gpu_busy'], most: 100, format: (value) => `${Math.round(value)} %` },
    { key: 'gpu_memory', measures: ['gpu_memory_bytes'], format: formatBytes },
    { key: 'cpu', measures: ['cpus'], most: cpus, format: (value) => String(Number(value.toFixed(2))) },
    { key: 'memory', measures: ['memory_bytes'], most: memoryBytes, format: formatBytes },
    { key: 'disk', measures: ['disk_read_bytes', 'disk_written_bytes'], most: LEAST_RATE, format: rate },
    { key: 'network', measures: ['received_bytes', 'sent_bytes'], most: LEAST_RATE, format: rate },
  ]
  return gpus > 0 ? plots : plots.slice(2)
}

/** What something used, over a stretch of time that stands in the address. */
export function MetricsPanel({ source, taking, end, limits, file }: Props) {
  const { t, i18n } = useTranslation('metrics')
  const { range = DEFAULT_RANGE } = useSearch({ strict: false })
  const { data, dataUpdatedAt, error, isPending, refetch } = useQuery(
    samplesQuery(source, RANGES[range], taking, end),
  )
  const last = end === undefined ? dataUpdatedAt : new Date(end).getTime()
  return (
    <Stack>
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <RangeControl range={range} />
          {end !== undefined && (
            <Text size="xs" c="dimmed">
              {t('until', { at: formatExact(new Date(end), i18n.language) })}
            </Text>
          )}
        </Group>
        {data && data.length > 0 && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconDownload size={16} />}
            onClick={() => saveFile(`${file}.csv`, csvOf(data), 'text/csv')}
          >
            {t('csv')}
          </Button>
        )}
      </Group>
      {error && <Trouble error={error} onRetry={() => void refetch()} />}
      {isPending && <LoadingRows rows={2} height={180} />}
      {data?.length === 0 && <Text c="dimmed">{t(taking ? 'none_yet' : 'none')}</Text>}
      {data && data.length > 0 && (
        <Plots samples={data} until={last / 1000} range={range} plots={plotsFor(limits)} />
      )}
    </Stack>
  )
}

function RangeControl({ range }: { range: MetricsRange }) {
  const { t } = useTranslation('metrics')
  const navigate = useNavigate()
  const ranges: MetricsRange[] = ['15m', '1h', '6h', '1d', '7d']
  return (
    <SegmentedControl<MetricsRange>
      aria-label={t('range')}
      size="xs"
      data={ranges.map((value) => ({ value, label: t(`last.${value}`) }))}
      value={range}
      onChange={(chosen) =>
        void navigate({ to: '.', search: (before) => ({ ...before, range: chosen }), replace: true })
      }
    />
  )
}

interface PlotsProps {
  samples: Sample[]
  /** Where they end, in seconds since 1970. */
  until: number
  range: MetricsRange
  plots: Plot[]
}

function Plots({ samples, until, range, plots }: PlotsProps) {
  const { t, i18n } = useTranslation('metrics')
  const seconds = RANGES[range]
  const columns = useMemo(() => columnsOf(samples, stepOf(seconds, POINTS)), [samples, seconds])
  const clock = new Intl.DateTimeFormat(
    i18n.language,
    seconds > 86_400 ? { month: 'numeric', day: 'numeric' } : { hour: '2-digit', minute: '2-digit' },
  )
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      {plots.map(({ key, measures, most, format }) => (
        <Suspense key={key} fallback={<Skeleton className="after-a-moment" height={180} />}>
          <Chart
            label={t(`plot.${key}`)}
            times={columns.times}
            stretch={[until - seconds, until]}
            lines={measures.map((measure): Line => ({
              label: t(`line.${measure}`),
              values: columns.of[measure],
            }))}
            most={most}
            format={format}
            formatTime={(at) => clock.format(new Date(at * 1000))}
          />
        </Suspense>
      ))}
    </SimpleGrid>
  )
}
