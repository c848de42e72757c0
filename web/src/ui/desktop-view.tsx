// A remote desktop. The only place that knows noVNC; loaded when a desktop is first looked at.

import RFB from '@novnc/novnc'
import { type Ref, useEffect, useImperativeHandle, useRef } from 'react'

import classes from './desktop-view.module.css'

/** How the desktop meets the window: it takes the window's size, is drawn smaller, or is shown as it is. */
export type DesktopSize = 'resize' | 'scale' | 'original'

export interface DesktopHandle {
  paste: (text: string) => void
  ctrlAltDel: () => void
  focus: () => void
}

interface Props {
  label: string
  size: DesktopSize
  connect: () => WebSocket
  onConnected: () => void
  onLost: () => void
  /** Something was copied on the desktop. */
  onCopied: (text: string) => void
  /** The key that leads back into the page: the desktop takes every other one. */
  onLeave: () => void
  ref?: Ref<DesktopHandle>
}

function fit(view: RFB, size: DesktopSize) {
  view.resizeSession = size === 'resize'
  view.scaleViewport = size === 'scale'
  view.clipViewport = size === 'original'
}

export function DesktopView({ label, size, connect, onConnected, onLost, onCopied, onLeave, ref }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const desktop = useRef<RFB>(null)
  const now = useRef({ size, onConnected, onLost, onCopied, onLeave })
  useEffect(() => {
    now.current = { size, onConnected, onLost, onCopied, onLeave }
  })

  useEffect(() => {
    if (place.current === null) return
    const view = new RFB(place.current, connect())
    let left = false
    view.background = 'transparent'
    fit(view, now.current.size)
    view.addEventListener('connect', () => {
      now.current.onConnected()
      view.focus()
    })
    view.addEventListener('disconnect', () => {
      if (!left) now.current.onLost()
    })
    view.addEventListener('clipboard', ({ detail }) => now.current.onCopied(detail.text))
    desktop.current = view
    return () => {
      left = true
      desktop.current = null
      view.disconnect()
    }
  }, [connect])

  useEffect(() => {
    if (desktop.current) fit(desktop.current, size)
  }, [size])

  useImperativeHandle(
    ref,
    () => ({
      paste: (text) => desktop.current?.clipboardPasteFrom(text),
      ctrlAltDel: () => desktop.current?.sendCtrlAltDel(),
      focus: () => desktop.current?.focus(),
    }),
    [],
  )

  return (
    <div
      ref={place}
      className={classes.desktop}
      role="application"
      aria-label={label}
      onKeyDownCapture={(event) => {
        if (!(event.ctrlKey && event.shiftKey && event.key === 'F6')) return
        event.preventDefault()
        event.stopPropagation()
        desktop.current?.blur()
        now.current.onLeave()
      }}
    />
  )
}
