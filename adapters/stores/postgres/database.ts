/** Connections to whichever server of a URL takes writes. */
import { userInfo } from 'node:os'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionOptions, PostgresConnection, PostgresQuery } from './connection.ts'
import { classify, ConnectionLostError, isStatementError, overloadedError, toStoreError } from './errors.ts'
import { createHosts, type Hosts } from './hosts.ts'
import { before, createPool, createSlot, pause, type Pool, type Slot } from './pool.ts'
import { durably, runTransaction, type TransactionOptions, type TransactionWork } from './transaction.ts'
import { parseUrl, type PostgresUrl } from './url.ts'

/**
 * A database. Trouble with the server or the connection is a `StoreError` `unreachable`, whose message never holds a
 * password, a parameter or a value of a row; what the server says to a statement is a `SqlError`.
 */
export interface PostgresDatabase {
  /** `HOST:PORT/NAME`, for messages. */
  readonly location: string
  /** A short read, pipelined on one connection. Repeated on another if that is lost or silent. */
  readonly lookUp: PostgresQuery
  /** A short write, pipelined on one connection and committed asynchronously: a crash of the server may undo it. */
  readonly asyncCommit: PostgresQuery
  /**
   * A short write on another connection than `asyncCommit`, which returns rows, and is on disk when it is answered.
   * One that is not answered in time is not committed later.
   */
  readonly commit: PostgresQuery
  /** A read on a free connection. Repeated on 40001, and if the connection is lost. */
  readonly read: PostgresQuery
  /**
   * A write on a free connection, committed when it is answered. Repeated on 40001 and 40P01.
   *
   * @throws {StoreError} with `cause` a `CommitUnknownError` if the connection was lost before the answer.
   */
  readonly write: PostgresQuery
  /**
   * Runs `work` in a transaction, and again on 40001, 40P01 and if the connection is lost before the commit: it may do
   * nothing but query. With `readOnly`, it sees one snapshot.
   *
   * @throws {StoreError} as `write` does.
   */
  transaction<T>(
    work: TransactionWork<T>,
    options?: Omit<TransactionOptions, 'location'>,
  ): Promise<T>
  /** Runs `work` in a transaction that is `readOnly`. Each statement has a quarter of the time of a look-up. */
  search<T>(work: (query: PostgresQuery) => Promise<T>): Promise<T>
  /** Call when a look-up finds its server read-only: all connections are replaced. @throws {StoreError} */
  reportReadOnly(): void
  /**
   * Calls back on each `notify` of any replica and after each gap, unless server or pooler have no LISTEN.
   *
   * @returns How to stop that.
   */
  listen(callback: () => void): () => void
  /** Calls back the listeners of all replicas. Never rejects. */
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
  /** When the attempts end, by `performance.now()`. */
  readonly deadline?: number
  /** Whether `work` is a statement that commits. */
  readonly commits?: boolean
  /** Whether `work` is a transaction that may not write, or one that may. */
  readonly readOnly?: boolean
}

/** Attempts at most, by what the error before asks for. */
const maxAttempts = { repeat: 10, replace: 3 }
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
export function connect(address: string, options: ConnectOptions = {}): PostgresDatabase {
  const { lookUpTimeoutMs = 1_000, timeoutMs = 10_000 } = options
  const url = parseUrl(address, { environment: process.env, user: osUser() })
  const { location } = url
  // Half of the time, so that a look-up on a dead connection can be repeated on another.
  const hosts = createHosts(url, url.connectTimeoutMs ?? lookUpTimeoutMs / 2)
  const { lookUps, asyncCommits, commits, pool, listener, renew } = createSlots(url, hosts, lookUpTimeoutMs)
  const run = createRunner(location, hosts, pool, timeoutMs)
  const statementTimeoutMs = Math.ceil(lookUpTimeoutMs / 4)

  const queryOf = (withinMs: number, options: RunOptions): PostgresQuery => (sql, parameters) =>
    run(
      (connection) => connection.query(sql, parameters) as Promise<never>,
      { ...options, deadline: performance.now() + withinMs },
    )
  const transact = <T>(work: TransactionWork<T>, options: Omit<TransactionOptions, 'location'>): Promise<T> =>
    run((connection) => runTransaction(connection, { location, ...options }, work), options)
  const asyncCommit = queryOf(lookUpTimeoutMs, { shared: asyncCommits, commits: true })
  const commit = queryOf(lookUpTimeoutMs, { shared: commits, commits: true })
  let canNotify = true
  let closing: Promise<void> | undefined

  async function closeAll(): Promise<void> {
    hosts.close()
    await pool.close(performance.now() + closeMs)
    await hosts.end(closeMs)
  }

  return {
    location,
    lookUp: queryOf(lookUpTimeoutMs, { shared: lookUps }),
    asyncCommit,
    commit: (sql, parameters) => commit(durably(sql), parameters),
    read: queryOf(timeoutMs, {}),
    write: queryOf(timeoutMs, { commits: true }),

    transaction: (work, options = { readOnly: false }) => transact(work, options),
    search: (work) => transact(work, { readOnly: true, statementTimeoutMs }),

    reportReadOnly() {
      if (!url.primaryOnly) return
      const error = new ConnectionLostError('the server takes no writes any more')
      lookUps.current()?.destroy(error.message)
      renew()
      throw toStoreError(location, error)
    },

    listen: url.isPooled ? () => () => {} : listener.listen,

    async notify() {
      if (!canNotify) return
      await asyncCommit('NOTIFY partner_api').catch((error) => canNotify = !isStatementError(error))
    },

    close: () => closing ??= closeAll(),
  }
}

/** The connections of a database, by what they are for. */
function createSlots(url: PostgresUrl, hosts: Hosts, lookUpTimeoutMs: number) {
  let epoch = 0
  const openSlot = (options: Partial<ConnectionOptions>) => createSlot(() => hosts.open(options), () => epoch)
  const listener = createListener(openSlot, hosts.isClosed)

  /** Has all connections replaced: their server may not be the primary any more. */
  function renew(): void {
    epoch++
    listener.renew()
  }

  const settings = { statement_timeout: String(lookUpTimeoutMs) }
  const lookUps = createSlot(async () => {
    const connection = await hosts.open({ silenceMs: lookUpTimeoutMs / 2, settings })
    void connection.lost.then(renew)
    return connection
  }, () => epoch)
  const asyncCommits = openSlot({
    silenceMs: lookUpTimeoutMs,
    settings: { ...settings, synchronous_commit: 'off' },
  })
  const commits = openSlot({ silenceMs: lookUpTimeoutMs, settings })
  const pool = createPool(
    Array.from({ length: url.connections }, () => openSlot({})),
    () => hosts.failure() ?? overloadedError(url.location, 'all connections are in use'),
  )
  return { lookUps, asyncCommits, commits, pool, listener, renew }
}

/** Runs work on a connection, again where that may help. */
function createRunner(
  location: string,
  hosts: Hosts,
  pool: Pool,
  timeoutMs: number,
) {
  return async <T>(work: (connection: PostgresConnection) => Promise<T>, options: RunOptions): Promise<T> => {
    const { shared, deadline = Infinity, commits = false, readOnly } = options
    const isWrite = commits || readOnly === false
    const startedAt = performance.now()
    const connectUntil = shared ? deadline : startedAt + retryTimeoutMs
    const late = () =>
      hosts.failure() ?? new ConnectionLostError(`no answer within ${Math.round(deadline - startedAt)} ms`)
    const attempts = { repeat: 1, replace: 1 }
    for (;;) {
      let stage: 'waiting' | 'connecting' | 'working' = 'waiting'
      let slot: Slot | undefined
      let connection: PostgresConnection | undefined
      try {
        if (hosts.isClosed()) throw new ConnectionLostError('it was closed')
        slot = shared ?? await pool.take(Math.min(deadline, performance.now() + timeoutMs), isWrite)
        stage = 'connecting'
        connection = slot.current() ?? await before(deadline, slot.open(), late)
        stage = 'working'
        return await before(deadline, work(connection), late)
      } catch (error) {
        const { next, cause } = classify(error, { stage, commits, readOnly })
        // A shared connection may only be slow, and notices by itself when it is lost.
        const isOver = error instanceof ConnectionLostError ? !shared : next === 'replace'
        if (isOver) connection?.destroy((error as Error).message)
        const isWorthwhile = next === 'connect'
          ? performance.now() < connectUntil
          : next !== 'fail' && attempts[next]++ < maxAttempts[next]
        // A timer may be a millisecond early.
        if (!isWorthwhile || performance.now() > deadline - 2) throw toStoreError(location, cause)
      } finally {
        if (slot && !shared) pool.release(slot, isWrite)
      }
      if (attempts.repeat > 1) await pause(attempts.repeat - 1)
    }
  }
}

/** Calls back on each `notify` of any replica and after each gap. */
function createListener(openSlot: (options: Partial<ConnectionOptions>) => Slot, isClosed: () => boolean) {
  const callbacks = new Set<() => void>()
  let connection: PostgresConnection | undefined
  let listening: Promise<void> | undefined

  function callAll(): void {
    for (const callback of callbacks) callback()
  }

  async function run(): Promise<void> {
    const slot = openSlot({ silenceMs: heartbeat.timeoutMs, onNotify: callAll })
    while (!isClosed()) {
      try {
        const opened = connection = await slot.open()
        await opened.query('LISTEN partner_api')
        callAll()
        const timer = setInterval(() => opened.query('').catch(() => {}), heartbeat.everyMs).unref()
        await opened.lost
        clearInterval(timer)
      } catch (error) {
        connection?.destroy('it cannot listen')
        // Not every server of this protocol has LISTEN.
        if (isStatementError(error)) return
        await sleep(retryTimeoutMs, undefined, { ref: false })
      }
    }
  }

  return {
    renew: () => connection?.destroy('it was replaced'),
    listen(callback: () => void): () => void {
      callbacks.add(callback)
      listening ??= run()
      return () => void callbacks.delete(callback)
    },
  }
}

/** The user of a URL without one: as in libpq, that of this process, if the system knows it. */
function osUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
