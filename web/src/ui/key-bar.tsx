import { Button, Group } from '@mantine/core'
import { useTranslation } from 'react-i18next'

import classes from './key-bar.module.css'

const KEYS = [
  ['escape', '\u001b'],
  ['tab', '\t'],
  ['interrupt', '\u0003'],
  ['end', '\u0004'],
  ['left', '\u001b[D', '←'],
  ['up', '\u001b[A', '↑'],
  ['down', '\u001b[B', '↓'],
  ['right', '\u001b[C', '→'],
] as const

/** The keys that a phone's keyboard does not have. Shown only where fingers point. */
export function KeyBar({ onKey }: { onKey: (text: string) => void }) {
  const { t } = useTranslation('streams')
  return (
    <Group gap={3} className={classes.bar} role="group" aria-label={t('terminal.keys')}>
      {KEYS.map(([name, text, sign]) => (
        <Button
          key={name}
          variant="default"
          size="compact-sm"
          px={6}
          aria-label={sign && t(`terminal.key.${name}`)}
          // The terminal keeps the focus, and with it the phone's keyboard.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onKey(text)}
        >
          {sign ?? t(`terminal.key.${name}`)}
        </Button>
      ))}
    </Group>
  )
}
