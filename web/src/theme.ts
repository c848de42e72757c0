// Colours and type. The primary shade is darker than Mantine's own, whose blue is too faint for text on white.

import { createTheme, type CSSVariablesResolver, localStorageColorSchemeManager } from '@mantine/core'

export const colorSchemes = localStorageColorSchemeManager({ key: 'berth.color-scheme' })

// Fonts of the system only: a Chinese web font would be megabytes.
const SANS =
  'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif'
export const MONOSPACE =
  'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", "Microsoft YaHei", monospace'

export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: { light: 9, dark: 8 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  fontFamily: SANS,
  fontFamilyMonospace: MONOSPACE,
  defaultRadius: 'md',
  cursorType: 'pointer',
  lineHeights: { md: '1.6' },
  headings: { fontWeight: '650' },
  respectReducedMotion: true,
  components: {
    Tooltip: {
      defaultProps: { withArrow: true, openDelay: 250, events: { hover: true, focus: true, touch: true } },
    },
    Modal: { defaultProps: { centered: true } },
  },
})

/**
 * Mantine's secondary text, error text and tinted badges miss the 4.5 : 1 that small text needs (WCAG 2.2 AA); these do
 * not, on white as on a tint, on the dark ground as on a dark card.
 */
export const readableColors: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#495057',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-placeholder': '#6c757d',
    '--mantine-color-blue-light-color': '#1459a0',
    '--mantine-color-green-light-color': '#1b6a2c',
    '--mantine-color-teal-light-color': '#066647',
    '--mantine-color-yellow-light-color': '#8a4600',
    '--mantine-color-orange-light-color': '#9c3803',
    '--mantine-color-red-light-color': '#b02222',
  },
  dark: {
    '--mantine-color-dimmed': '#b8b8b8',
    '--mantine-color-error': '#ff8787',
    '--mantine-color-placeholder': '#a0a0a0',
  },
})
