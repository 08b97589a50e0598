import { setTimeout as sleep } from 'node:timers/promises'
import type { Query, Row, Value } from './database.ts'
import type { Door } from './door.ts'
import { createEntrance, pauseAfter } from './entrance.ts'
import type { Session } from './session.ts'
import { explain, isDemoted, isToBeRepeated, Lost, unreachable } from './sql-error.ts'

/** One connection for many short statements at once, replaced when it is lost. */
export interface Link {
  readonly query: Query
  /** Gives its connection up for another one. */
  replace(reason: string): void
  /** Takes nothing more, and waits for what is under way, but not longer than for `late`. */
  close(late: Promise<void>): Promise<void>
}

export interface LinkOptions {
  /** Where the server is, for messages. */
  readonly place: string
  /** Milliseconds within which every statement is answered or given up. */
  readonly timeoutMs: number
  /** Milliseconds of silence after which the connection is given up. */
  readonly silenceMs: number
  /** Whether what was under way on a connection that was lost is sent once more. */
  readonly isRepeatable: boolean
  /** What the server is told when connecting. */
  readonly settings: Readonly<Record<string, string>>
  /** Called when its connection was lost, unless it was closed. */
  readonly lost?: () => void
}

/** A statement that waits for its answer. */
interface Request {
  readonly sql: string
  readonly parameters: readonly Value[]
  readonly resolve: (rows: never[]) => void
  readonly reject: (error: unknown) => void
  readonly timer: NodeJS.Timeout
  /** How often it was sent. */
  sent: number
}

/** How often a statement is sent when the server asks for it again. */
const maxSent = 10

export function createLink(door: Door, options: LinkOptions): Link {
  const { place, timeoutMs, silenceMs, isRepeatable, settings } = options
  const open = new Set<Request>()
  /** Those that are to be sent once there is a connection. */
  const waiting = new Set<Request>()
  let session: Session | undefined
  let isConnecting = false
  let isClosed = false
  let drained: (() => void) | undefined

  const entrance = createEntrance(door, {
    settings,
    silenceMs,
    silent: (one) => one.lose(`no answer within ${silenceMs} ms`),
    // Each request has a timer that does.
    keepsAlive: false,
  })

  function query<R extends Row>(sql: string, parameters: readonly Value[] = []): Promise<R[]> {
    if (isClosed) return Promise.reject(unreachable(place, 'it was closed'))
    return new Promise((resolve, reject) => {
      // When it was this process that stood still, answers that are here already are read first.
      const timer = setTimeout(() => setImmediate(expire, request), timeoutMs)
      const request: Request = { sql, parameters, resolve, reject, timer, sent: 0 }
      open.add(request)
      send(request)
    })
  }

  function send(request: Request): void {
    if (session === undefined) {
      waiting.add(request)
      void connect()
      return
    }
    request.sent++
    session.ask<never>(request.sql, request.parameters).then(
      (rows) => {
        if (settle(request)) request.resolve(rows)
      },
      (error: unknown) => goOn(request, error),
    )
  }

  /** Another attempt, if the error allows for one. */
  function goOn(request: Request, error: unknown): void {
    if (!open.has(request)) return
    // It refused the statement.
    if (isDemoted(error)) session?.lose((error as Error).message)
    const isUndone = isDemoted(error) || error instanceof Lost && isRepeatable
    if (isUndone && request.sent < 2) return send(request)
    if (!isToBeRepeated(error) || request.sent >= maxSent) return fail(request, explain(place, error))
    void sleep(pauseAfter(request.sent)).then(() => {
      if (open.has(request)) send(request)
    })
  }

  function expire(request: Request): void {
    const reason = request.sent === 0 ? entrance.failure()?.message : undefined
    fail(request, unreachable(place, reason ?? `no answer within ${timeoutMs} ms`))
  }

  function fail(request: Request, error: unknown): void {
    if (settle(request)) request.reject(error)
  }

  /** @returns false when it was settled before. */
  function settle(request: Request): boolean {
    clearTimeout(request.timer)
    waiting.delete(request)
    const wasOpen = open.delete(request)
    if (open.size === 0) drained?.()
    return wasOpen
  }

  async function connect(): Promise<void> {
    if (isConnecting) return
    isConnecting = true
    while (session === undefined && waiting.size > 0 && !door.isClosed()) {
      try {
        const found = await entrance.open(() => waiting.size > 0)
        if (found !== undefined) use(found)
        // Nobody is left who would end it.
        if (isClosed && waiting.size + open.size === 0) void found?.end()
      } catch (error) {
        for (const request of waiting) fail(request, explain(place, error))
      }
    }
    isConnecting = false
  }

  function use(found: Session): void {
    session = found
    found.whenLost(() => {
      session = undefined
      if (!isClosed) options.lost?.()
    })
    const requests = [...waiting]
    waiting.clear()
    requests.forEach(send)
  }

  return {
    query,
    replace: (reason) => session?.lose(reason),
    async close(late) {
      isClosed = true
      const done = new Promise<void>((resolve) => drained = resolve)
      if (open.size > 0) await Promise.race([done, late])
      for (const request of open) fail(request, unreachable(place, 'it was closed'))
      await session?.end()
    },
  }
}
