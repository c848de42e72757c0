// One stream of events keeps the query cache true.
//
// What is one's own comes as it is now; of everything else comes the news that something of its kind has changed, and the
// views that are open read it again. After every (re)connect all of them do, because events of the gap are gone. While
// the stream is down the queries poll instead (see `main.tsx`). A hidden tab gives its stream back after a while: over HTTP/1.1 a browser
// opens only six connections to one origin, and a seventh tab would find them all taken.

import type { QueryClient } from '@tanstack/react-query'

import { Backoff } from '../util/backoff'
import { EventParser, type ServerEvent } from './event-stream'
import { imageChanged, imageDeleted } from './images'
import { instanceChanged, instanceDeleted } from './instances'
import { jobChanged, jobDeleted } from './jobs'
import { doubt } from './link'
import { refetchAll, refetchTopics } from './topics'
import { meQuery } from './session'
import type { Image, Instance, Job } from './types'

export type LiveState = 'connecting' | 'live' | 'lost'

/** The gateway sends a heartbeat every 15 s; after three missing ones the link is dead. */
const SILENCE_LIMIT_MS = 45_000
const HIDDEN_LIMIT_MS = 60_000

/** What arrives is ours: same origin, same release. The guards only keep a stray message from reaching the pages. */
function isInstance(value: unknown): value is Instance {
  return (
    typeof value === 'object' && value !== null && 'id' in value && 'status' in value && 'actions' in value
  )
}

function isJob(value: unknown): value is Job {
  return hasId(value) && 'roles' in value && 'tasks' in value
}

function isImage(value: unknown): value is Image {
  return typeof value === 'object' && value !== null && 'reference' in value && 'size_bytes' in value
}

function hasId(value: unknown): value is { id: string } {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string'
}

function hasTopics(value: unknown): value is { topics: string[] } {
  return typeof value === 'object' && value !== null && 'topics' in value && Array.isArray(value.topics)
}

/** Asks every view anew how often it is to be read: nobody else tells it that the stream is lost. */
function reconsiderPolling(cache: QueryClient) {
  for (const query of cache.getQueryCache().getAll()) {
    for (const observer of query.observers) observer.setOptions(observer.options)
  }
}

export class Live {
  private state: LiveState = 'connecting'
  private heardAt = Date.now()
  private answered = true
  private readonly listeners = new Set<() => void>()
  private readonly backoff = new Backoff()
  private connection: AbortController | null = null
  private retry: ReturnType<typeof setTimeout> | undefined
  private hiding: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly cache: QueryClient) {}

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  readonly current = () => this.state

  /** Whether the gateway cannot be asked at all: a stream that it merely refuses, or that ended, is another thing. */
  readonly unreachable = () => this.state === 'lost' && !this.answered

  /** When the gateway was last heard, if only its heartbeat. */
  readonly lastHeard = () => this.heardAt

  /** Connects, and stays connected until the returned function is called. */
  start(): () => void {
    const seen = () => {
      clearTimeout(this.hiding)
      if (document.hidden) this.hiding = setTimeout(() => this.disconnect(), HIDDEN_LIMIT_MS)
      else if (this.connection === null) this.connect()
    }
    const online = () => {
      // One that has given its stream back takes it again when somebody looks.
      if (document.hidden && this.connection === null) return
      this.connect()
      seen()
    }
    document.addEventListener('visibilitychange', seen)
    window.addEventListener('online', online)
    // A gateway on one's own machine answers without a network: so it is asked, and not taken for lost.
    window.addEventListener('offline', online)
    this.connect()
    // A tab may be opened behind another one, and never be looked at.
    seen()
    return () => {
      document.removeEventListener('visibilitychange', seen)
      window.removeEventListener('online', online)
      window.removeEventListener('offline', online)
      clearTimeout(this.hiding)
      this.disconnect()
      this.become('connecting')
    }
  }

  /** Hears nothing more: whoever signs out is told of it too, and would ask for what is no longer theirs to see. */
  pause() {
    this.disconnect()
  }

  /** At once, and not when the next attempt would be due. */
  reconnect() {
    this.backoff.reset()
    this.connect()
  }

  private become(state: LiveState) {
    if (state === this.state) return
    this.state = state
    reconsiderPolling(this.cache)
    this.tell()
  }

  private tell() {
    for (const listener of this.listeners) listener()
  }

  private disconnect() {
    clearTimeout(this.retry)
    this.connection?.abort()
    this.connection = null
  }

  private connect() {
    this.disconnect()
    const connection = new AbortController()
    this.connection = connection
    void this.read(connection).finally(() => {
      // Another connection, or none, may have taken its place on purpose.
      if (this.connection !== connection) return
      this.become('lost')
      this.tell()
      this.retry = setTimeout(() => this.connect(), this.backoff.next())
    })
  }

  /** Reads until the stream ends, for whatever reason. */
  private async read(connection: AbortController): Promise<void> {
    let silence: ReturnType<typeof setTimeout> | undefined
    const watch = () => {
      clearTimeout(silence)
      silence = setTimeout(() => connection.abort(), SILENCE_LIMIT_MS)
    }
    try {
      watch()
      const response = await fetch('/api/v1/events', {
        headers: { accept: 'text/event-stream' },
        signal: connection.signal,
      }).catch((error: unknown) => {
        // One that was given up on purpose says nothing of the gateway.
        if (this.connection === connection) this.answered = false
        throw error
      })
      this.answered = true
      // Asking who we are tells a lost session from a passing trouble, and leads to the sign-in page.
      if (response.status === 401) void this.cache.invalidateQueries({ queryKey: meQuery.queryKey })
      if (!response.ok || response.body === null) return
      this.backoff.reset()
      const back = this.state === 'lost'
      this.become('live')
      if (back) doubt(this.heardAt)
      void refetchAll(this.cache)

      const parser = new EventParser()
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        this.heardAt = Date.now()
        watch()
        for (const event of parser.push(value)) this.take(event)
      }
    } catch {
      // A broken link is the ordinary case here; the caller connects again.
    } finally {
      clearTimeout(silence)
      connection.abort()
    }
  }

  private take({ event, data }: ServerEvent) {
    const value: unknown = JSON.parse(data)
    if (event === 'changed' && hasTopics(value)) refetchTopics(this.cache, value.topics)
    if (event === 'instance' && isInstance(value)) instanceChanged(this.cache, value)
    if (event === 'image' && isImage(value)) imageChanged(this.cache, value)
    if (event === 'image_deleted' && hasId(value)) imageDeleted(this.cache, value.id)
    if (event === 'job' && isJob(value)) jobChanged(this.cache, value)
    if (event === 'job_deleted' && hasId(value)) jobDeleted(this.cache, value.id)
    if (event === 'instance_deleted' && hasId(value)) instanceDeleted(this.cache, value.id)
  }
}
