// Numbers, sizes and times as people of each language write them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

export const HOUR_S = 3_600
export const DAY_S = 24 * HOUR_S
export const GIB = 2 ** 30
export const MIB = 2 ** 20

/** Binary units, at most one digit after the point, and none where it would be zero. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${Number(value.toFixed(digits))} ${UNITS[unit]}`
}

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

/** "5 minutes ago"; nothing for less than a minute: the text is redrawn only twice a minute. */
export function formatAgo(then: Date, now: Date, language: string): string | null {
  const seconds = (then.getTime() - now.getTime()) / 1000
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) >= length) return format.format(Math.trunc(seconds / length), unit)
  }
  return null
}

export function formatExact(then: Date, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(then)
}

/** "1 h 5 min": the two largest units that count. */
export function formatDuration(seconds: number, language: string): string {
  const whole = Math.round(seconds)
  const units: [string, number][] = [
    ['day', Math.floor(whole / 86_400)],
    ['hour', Math.floor(whole / 3_600) % 24],
    ['minute', Math.floor(whole / 60) % 60],
    ['second', whole % 60],
  ]
  const first = units.findIndex(([, count]) => count > 0)
  const shown = first === -1 ? units.slice(3) : units.slice(first, first + 2).filter(([, count]) => count > 0)
  return shown
    .map(([unit, count]) =>
      new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short' }).format(count),
    )
    .join(' ')
}
