// A terminal on the screen. It knows xterm.js and nothing else: where the bytes come from is the caller's affair.
// Loaded on demand: nobody who only looks at a list pays for it.

import '@xterm/xterm/css/xterm.css'

import { useComputedColorScheme } from '@mantine/core'
import { FitAddon } from '@xterm/addon-fit'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { type ITheme, Terminal } from '@xterm/xterm'
import { type Ref, useEffect, useImperativeHandle, useRef } from 'react'

import classes from './term-view.module.css'

/** What the terminal offers to whatever is on the other side. */
export interface TermScreen {
  size: () => { cols: number; rows: number }
  clear: () => void
  /** Shows bytes, and says when they have been dealt with. */
  write: (bytes: Uint8Array<ArrayBuffer>, done: () => void) => void
}

export interface TermWire {
  send: (bytes: Uint8Array<ArrayBuffer>) => void
  resize: (size: { cols: number; rows: number }) => void
  close: () => void
}

export interface TermHandle {
  focus: () => void
  /** As if typed. */
  type: (text: string) => void
}

interface Props {
  ref?: Ref<TermHandle>
  label: string
  fontFamily: string
  /** Connects the terminal; called once, when it is on the screen and knows its size. */
  attach: (screen: TermScreen) => TermWire
  screenReader: boolean
  /** The way out for the keyboard: inside, Tab belongs to the shell. */
  onLeave: () => void
}

const LIGHT: ITheme = {
  background: '#ffffff',
  foreground: '#212529',
  cursor: '#1864ab',
  cursorAccent: '#ffffff',
  selectionBackground: '#a5d8ff',
  black: '#212529',
  red: '#c92a2a',
  green: '#2b7a3d',
  yellow: '#9a5b00',
  blue: '#1864ab',
  magenta: '#862e9c',
  cyan: '#0b7285',
  white: '#6c757d',
  brightBlack: '#495057',
  brightRed: '#e03131',
  brightGreen: '#2f8f46',
  brightYellow: '#b36b00',
  brightBlue: '#1971c2',
  brightMagenta: '#9c36b5',
  brightCyan: '#0c8599',
  brightWhite: '#343a40',
}

const DARK: ITheme = {
  background: '#1a1b1e',
  foreground: '#e9ecef',
  cursor: '#74c0fc',
  cursorAccent: '#1a1b1e',
  selectionBackground: '#364fc7',
}

export function TermView({ ref, label, fontFamily, attach, screenReader, onLeave }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const terminal = useRef<Terminal>(null)
  const scheme = useComputedColorScheme('light')
  const theme = scheme === 'dark' ? DARK : LIGHT
  // The newest of what may change, for listeners that are set up once.
  const now = useRef({ attach, onLeave, theme, label })
  useEffect(() => {
    now.current = { attach, onLeave, theme, label }
  })

  useImperativeHandle(ref, () => ({
    focus: () => terminal.current?.focus(),
    type: (text) => terminal.current?.input(text, true),
  }))

  useEffect(() => {
    const element = place.current
    if (element === null) return
    const term = new Terminal({
      fontFamily,
      fontSize: 14,
      lineHeight: 1.15,
      scrollback: 10_000,
      cursorBlink: !window.matchMedia('(prefers-reduced-motion: reduce)').matches,
      theme: now.current.theme,
      minimumContrastRatio: 4.5,
      screenReaderMode: false,
    })
    terminal.current = term
    const fit = new FitAddon()
    term.loadAddon(fit)
    term.loadAddon(new WebLinksAddon())
    term.open(element)
    term.textarea?.setAttribute('aria-label', now.current.label)
    fit.fit()

    const wire = now.current.attach({
      size: () => ({ cols: term.cols, rows: term.rows }),
      clear: () => term.reset(),
      write: (bytes, done) => term.write(bytes, done),
    })
    const encoder = new TextEncoder()
    term.onData((text) => wire.send(encoder.encode(text)))
    term.onBinary((text) => wire.send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))))
    term.onResize(({ cols, rows }) => wire.resize({ cols, rows }))
    term.attachCustomKeyEventHandler((event) => {
      if (event.type !== 'keydown' || !event.ctrlKey || !event.shiftKey) return true
      if (event.key === 'F6') {
        now.current.onLeave()
        return false
      }
      if (event.code === 'KeyC' && term.hasSelection()) {
        event.preventDefault()
        document.execCommand('copy')
        return false
      }
      return true
    })

    const resized = new ResizeObserver(() => {
      // A tab that is hidden has no size; fitting to it would tell the shell of a screen one column wide.
      if (element.clientWidth > 0 && element.clientHeight > 0) fit.fit()
    })
    resized.observe(element)
    term.focus()
    return () => {
      resized.disconnect()
      wire.close()
      term.dispose()
      terminal.current = null
    }
  }, [fontFamily])

  useEffect(() => {
    if (terminal.current) terminal.current.options.theme = theme
  }, [theme])

  useEffect(() => {
    // Off unless asked for: in this mode xterm.js 6.0 loses what a Chinese input method types.
    if (terminal.current) terminal.current.options.screenReaderMode = screenReader
  }, [screenReader])

  return <div ref={place} className={classes.terminal} style={{ background: theme.background }} />
}
