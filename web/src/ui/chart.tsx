// Lines over time. The only place that knows uPlot. Loaded on demand.

import 'uplot/dist/uPlot.min.css'

import { Group, Text, useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import UPlot from 'uplot'

import classes from './chart.module.css'

export interface Line {
  label: string
  /** As long as the times; null where nothing is known, and no line is drawn. */
  values: (number | null)[]
}

interface Props {
  label: string
  /** Seconds since 1970, ascending. */
  times: number[]
  /** From when to when the plot goes, whatever there is to show. */
  stretch: [number, number]
  lines: Line[]
  /** The least that the highest value on the scale is. */
  most?: number
  format: (value: number) => string
  formatTime: (seconds: number) => string
}

const COLORS = {
  light: { lines: ['#1864ab', '#a61e4d'], axis: '#495057', grid: '#dee2e6' },
  dark: { lines: ['#74c0fc', '#faa2c1'], axis: '#c1c2c5', grid: '#373a40' },
} as const

const HEIGHT = 160
/** Charts of one page move their crosshair together. */
const SYNC = UPlot.sync('berth')

export function Chart({ label, times, stretch, lines, most = 0, format, formatTime }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const [at, setAt] = useState<number | null>(null)
  const scheme = useComputedColorScheme('light')
  const colors = COLORS[scheme]
  const now = useRef({
    format,
    formatTime,
    most,
    stretch,
    data: [times, ...lines.map((line) => line.values)],
  })
  const count = lines.length
  useEffect(() => {
    now.current = { format, formatTime, most, stretch, data: [times, ...lines.map((line) => line.values)] }
  })

  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const axis = { stroke: colors.axis, grid: { stroke: colors.grid, width: 1 }, ticks: { show: false } }
    const made = new UPlot(
      {
        width: Math.max(element.clientWidth, 1),
        height: HEIGHT,
        legend: { show: false },
        cursor: { sync: { key: SYNC.key }, drag: { x: false, y: false } },
        scales: {
          x: { range: () => now.current.stretch },
          y: { range: (_, __, high) => [0, Math.max(now.current.most, high ?? 0, 1e-9) * 1.05] },
        },
        axes: [
          { ...axis, space: 80, values: (_, splits) => splits.map((split) => now.current.formatTime(split)) },
          { ...axis, size: 72, values: (_, splits) => splits.map((split) => now.current.format(split)) },
        ],
        series: [
          {},
          ...Array.from({ length: count }, (_, index) => ({
            stroke: colors.lines[index % colors.lines.length],
            width: 1.5,
            spanGaps: false,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(one) => setAt(one.cursor.idx ?? null)] },
      },
      aligned(now.current.data),
      element,
    )
    plot.current = made
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: HEIGHT })
    })
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [colors, count])

  useEffect(() => {
    plot.current?.setData(aligned([times, ...lines.map((line) => line.values)]))
  }, [times, lines])

  const shown = at ?? times.length - 1
  return (
    <figure className={classes.figure} aria-label={label}>
      <Group justify="space-between" gap="xs" component="figcaption">
        <Text size="sm" fw={600}>
          {label}
        </Text>
        <Group gap="sm">
          {lines.map((line, index) => {
            const value = line.values[shown]
            return (
              <Text key={line.label} size="xs" className="numbers">
                <span
                  className={classes.mark}
                  style={{ background: colors.lines[index % colors.lines.length] }}
                />
                {value === null || value === undefined ? line.label : `${line.label} ${format(value)}`}
              </Text>
            )
          })}
        </Group>
      </Group>
      <div ref={place} className={classes.plot} />
    </figure>
  )
}

function aligned([times = [], ...values]: (number | null)[][]): UPlot.AlignedData {
  return [times.map((time) => time ?? 0), ...values]
}
