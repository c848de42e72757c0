// What the console uses of noVNC, which has no types of its own.
declare module '@novnc/novnc' {
  interface Events {
    connect: CustomEvent<undefined>
    disconnect: CustomEvent<{ clean: boolean }>
    clipboard: CustomEvent<{ text: string }>
    securityfailure: CustomEvent<{ reason?: string }>
  }

  class RFB {
    constructor(target: HTMLElement, channel: string | WebSocket)
    scaleViewport: boolean
    resizeSession: boolean
    clipViewport: boolean
    background: string
    disconnect(): void
    focus(): void
    blur(): void
    sendCtrlAltDel(): void
    clipboardPasteFrom(text: string): void
    addEventListener<K extends keyof Events>(kind: K, listener: (event: Events[K]) => void): void
  }

  export { RFB as default }
}
