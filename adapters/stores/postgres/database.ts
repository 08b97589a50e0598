/** Connections to whichever server of a URL takes writes. */
import { userInfo } from 'node:os'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection, ConnectionOptions, Query } from './connection.ts'
import {
  CommitUnknownError,
  ConnectionLostError,
  isPermanent,
  isReadOnly,
  isRetryable,
  isStatementError,
  mayBeCommitted,
  overloadedError,
  toStoreError,
} from './errors.ts'
import { createHosts } from './hosts.ts'
import { before, createPool, createSlot, pause, type Slot } from './pool.ts'
import { runTransaction } from './transaction.ts'
import { parseUrl } from './url.ts'

/**
 * A database. Trouble with the server or the connection is a `StoreError` `unreachable`, whose message never holds a
 * password, a parameter or a value of a row; what the server says to a statement is a `SqlError`.
 */
export interface Database {
  /** `HOST:PORT/NAME`, for messages. */
  readonly place: string
  /** A short read, pipelined on one connection. Repeated on another if that is lost or silent. */
  readonly lookUp: Query
  /** A short write, pipelined on one connection and committed asynchronously: a crash of the server may undo it. */
  readonly asyncCommit: Query
  /** A read on a free connection. Repeated on 40001, and if the connection is lost. */
  readonly read: Query
  /**
   * A write on a free connection, committed when it is answered. Repeated on 40001 and 40P01.
   *
   * @throws {StoreError} with `cause` a `CommitUnknownError` if the connection was lost before the answer.
   */
  readonly write: Query
  /**
   * Runs `work` in a transaction, and again on 40001, 40P01 and if the connection is lost before the commit: it may do
   * nothing but query. With `readOnly`, it sees one snapshot; with `isSearch`, each statement has a quarter of the time
   * of a look-up.
   *
   * @throws {StoreError} as `write` does.
   */
  transaction<T>(
    work: (query: Query, rollback: () => void) => Promise<T>,
    options?: { readonly readOnly: boolean; readonly isSearch?: boolean },
  ): Promise<T>
  /** Call when a look-up finds its server read-only: all connections are replaced. @throws {StoreError} */
  reportReadOnly(): void
  /**
   * Calls back on each `notify` of any replica and after each gap, unless server or pooler have no LISTEN.
   *
   * @returns How to stop that.
   */
  listen(callback: () => void): () => void
  /** Never rejects. */
  notify(): Promise<void>
  /** Closes all connections. What is in flight has a second or two. */
  close(): Promise<void>
}

export interface ConnectOptions {
  /** Milliseconds, 20 or more, default 1,000, for a look-up or an asynchronous commit. */
  readonly lookUpTimeoutMs?: number
  /** Milliseconds, 20 or more, default 10,000, for any other single statement, and to wait for a free connection. */
  readonly timeoutMs?: number
}

interface RunOptions {
  /** Default: a slot of the pool, used exclusively. */
  readonly shared?: Slot
  /** By `performance.now()`. */
  readonly deadline?: number
  /** Whether `work` is a statement that commits. */
  readonly commits?: boolean
  /** Whether `work` is a transaction that may not write, or one that may. */
  readonly readOnly?: boolean
}

const MAX_REPEATS = 10
const MAX_LOSSES = 3
/** Connection timeout for calls other than look-ups, in milliseconds. */
const retryTimeoutMs = 2_000
/** Milliseconds between two statements on the connection that listens, and for which an answer may take. */
const heartbeat = { everyMs: 5_000, timeoutMs: 2_000 }
const closeMs = 1_000

/**
 * Connects when a connection is first needed. Idle connections do not keep the process alive.
 *
 * @throws {StoreError} as `parseUrl` does.
 */
export function connect(address: string, options: ConnectOptions = {}): Database {
  const { lookUpTimeoutMs = 1_000, timeoutMs = 10_000 } = options
  const url = parseUrl(address, { environment: process.env, user: osUser() })
  const { place } = url
  // Half of the time, so that a look-up on a dead connection can be repeated on another.
  const hosts = createHosts(url, url.connectTimeoutMs ?? lookUpTimeoutMs / 2)
  const listeners = new Set<() => void>()
  let epoch = 0
  let listener: Connection | undefined
  let isListening = false
  let canNotify = true
  let isClosed = false

  const settings = { statement_timeout: String(lookUpTimeoutMs) }
  const lookUps = slotFor({ silenceMs: lookUpTimeoutMs / 2, settings }, renew)
  const asyncCommits = slotFor({
    silenceMs: lookUpTimeoutMs,
    settings: { ...settings, synchronous_commit: 'off' },
  })
  const pool = createPool(
    Array.from({ length: url.connections }, () => slotFor({})),
    () => hosts.failure() ?? overloadedError(place, 'all connections are in use'),
  )

  function slotFor(options: Partial<ConnectionOptions>, onLost?: () => void): Slot {
    return createSlot(async () => {
      const connection = await hosts.open(options)
      if (onLost) void connection.lost.then(onLost)
      return connection
    }, () => epoch)
  }

  /** Has all connections replaced: their server may not be the primary any more. */
  function renew(): void {
    epoch++
    listener?.destroy('it was replaced')
  }

  /** Runs `work` on a connection, again where that may help. */
  async function run<T>(work: (connection: Connection) => Promise<T>, options: RunOptions): Promise<T> {
    const { shared, deadline = Infinity, commits, readOnly } = options
    const isWrite = commits === true || readOnly === false
    const startedAt = performance.now()
    const late = () =>
      hosts.failure() ?? new ConnectionLostError(`no answer within ${Math.round(deadline - startedAt)} ms`)
    for (let repeats = 0, losses = 0;;) {
      let slot: Slot | undefined
      let connection: Connection | undefined
      try {
        if (isClosed) throw new ConnectionLostError('it was closed')
        slot = shared ?? await pool.take(Math.min(deadline, performance.now() + timeoutMs), isWrite)
        connection = slot.current() ?? await before(deadline, slot.open(), late)
        return await before(deadline, work(connection), late)
      } catch (cause) {
        // The server has stopped taking writes: another one is the primary now.
        const error = !readOnly && isReadOnly(cause)
          ? new ConnectionLostError(cause.message, cause.code)
          : cause
        const isLost = error instanceof ConnectionLostError
        if (isLost && (!shared || error !== cause)) connection?.destroy(error.message)
        if (commits && connection && mayBeCommitted(error)) {
          throw toStoreError(place, new CommitUnknownError((error as Error).message))
        }
        const isWorthwhile = connection === undefined
          ? slot && !isPermanent(error) &&
            performance.now() < (shared ? deadline : startedAt + retryTimeoutMs)
          : isRetryable(error)
          ? ++repeats < MAX_REPEATS
          : isLost && ++losses < MAX_LOSSES
        // A timer may be a millisecond early.
        if (!isWorthwhile || performance.now() > deadline - 2) throw toStoreError(place, error)
      } finally {
        if (slot && !shared) pool.release(slot, isWrite)
      }
      if (repeats > 0) await pause(repeats)
    }
  }

  function queryOf(withinMs: number, options: RunOptions): Query {
    return (sql, parameters) =>
      run(
        (connection) => connection.query(sql, parameters) as Promise<never>,
        { ...options, deadline: performance.now() + withinMs },
      )
  }

  async function hear(): Promise<void> {
    const slot = slotFor({ silenceMs: heartbeat.timeoutMs, onNotify: tell })
    while (!isClosed) {
      try {
        const connection = listener = await slot.open()
        await connection.query('LISTEN partner_api')
        tell()
        const timer = setInterval(() => connection.query('').catch(() => {}), heartbeat.everyMs).unref()
        await connection.lost
        clearInterval(timer)
      } catch (error) {
        listener?.destroy('it cannot listen')
        // Not every server of this protocol has LISTEN.
        if (isStatementError(error)) return
        await sleep(retryTimeoutMs, undefined, { ref: false })
      }
    }
  }

  function tell(): void {
    for (const callback of listeners) callback()
  }

  async function close(): Promise<void> {
    isClosed = true
    hosts.close()
    await pool.close(performance.now() + closeMs)
    await hosts.end(closeMs)
  }

  const asyncCommit = queryOf(lookUpTimeoutMs, { shared: asyncCommits, commits: true })
  let closing: Promise<void> | undefined

  return {
    place,
    lookUp: queryOf(lookUpTimeoutMs, { shared: lookUps }),
    asyncCommit,
    read: queryOf(timeoutMs, {}),
    write: queryOf(timeoutMs, { commits: true }),

    transaction(work, { readOnly, isSearch } = { readOnly: false }) {
      const statementTimeoutMs = isSearch ? Math.ceil(lookUpTimeoutMs / 4) : undefined
      const options = { place, readOnly, statementTimeoutMs }
      return run((connection) => runTransaction(connection, options, work), { readOnly })
    },

    reportReadOnly() {
      if (!url.primaryOnly) return
      const error = new ConnectionLostError('the server takes no writes any more')
      lookUps.current()?.destroy(error.message)
      renew()
      throw toStoreError(place, error)
    },

    listen(callback) {
      listeners.add(callback)
      if (!isListening && !url.isPooled) void hear()
      isListening = true
      return () => void listeners.delete(callback)
    },

    async notify() {
      if (!canNotify) return
      await asyncCommit('NOTIFY partner_api').catch((error) => canNotify = !isStatementError(error))
    },

    close: () => closing ??= close(),
  }
}

/** As libpq does, if the system knows the user. */
function osUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
