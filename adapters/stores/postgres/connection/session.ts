/** One connection to a server. The only file that knows the driver. */
import type { Socket } from 'node:net'
import postgres from 'postgres'
import type { Address, Host } from './address.ts'
import type { Query, Row, Value } from './database.ts'
import { watchSilence } from './silence.ts'
import { isFatal, isFromServer, Lost, OutOfRange, readServerError, reasonOf } from './sql-error.ts'

/** A connection. It is lost once and for all: nothing reconnects, and nothing that was under way is sent again. */
export interface Session {
  readonly host: Host
  /**
   * Runs a statement, behind those that are under way.
   *
   * @throws {SqlError} what the server said. @throws {Lost}
   */
  readonly ask: Query
  /** Runs statements without parameters, separated by semicolons, and says what the server called the last one. */
  tell(sql: string): Promise<string>
  isLost(): boolean
  /** When the server last said something, on the clock of `performance.now()`. */
  heardAt(): number
  /** Calls back once it is lost, at once if it is already. */
  whenLost(callback: () => void): void
  /** Breaks it off: what is under way is lost. */
  lose(reason: string): void
  /** Takes leave, and resolves when the socket is closed: within half a second, whatever the server does. */
  end(): Promise<void>
}

/** What a connection is for. */
export interface Purpose {
  /** Settings that the server is told when connecting, where no pooler is in between. */
  readonly settings: Readonly<Record<string, string>>
  /** Milliseconds after which `silent` is asked what to do about a server that says nothing, again and again. */
  readonly silenceMs: number
  readonly silent: (session: Session) => void
  /** Whether a process with nothing else to do waits for its answers. */
  readonly keepsAlive: boolean
  /** Hears what is notified, on any channel. */
  readonly heard?: () => void
}

/** Statements that are prepared on a connection, at most: rooms that make up texts as they go do not fill the server. */
const maxPrepared = 500

/** Reads of many at once are answered one behind the other; above this they wait here. */
const maxPipeline = 1000

/** What is worth being prepared, when it has no parameters. */
const data = /^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE)\b[^;]*$/i

/** Once we take leave, how long the server may take to take note. */
const leaveMs = 500

/** Makes a connection of a socket that was just opened. */
export function createSession(socket: Socket, host: Host, address: Address, purpose: Purpose): Session {
  const pending = new Set<(error: Lost) => void>()
  /** Whether a statement is prepared, or about to be. */
  const prepared = new Map<string, boolean>()
  const watch = watchSilence(purpose.silenceMs, () => purpose.silent(session), purpose.keepsAlive)
  const client = createClient(socket, address, purpose)
  const callbacks: (() => void)[] = []
  let lost: Lost | undefined
  let heardAt = performance.now()

  socket.on('data', () => {
    heardAt = performance.now()
    watch.heard()
  })
  socket.once('error', (error) => loseBy(new Lost(reasonOf(error))))
  socket.once('close', () => loseBy(new Lost('the connection was closed')))

  function loseBy(error: Lost): void {
    if (lost !== undefined) return
    lost = error
    watch.stop()
    // A driver that has no connection has nobody who listens.
    socket.on('error', () => {})
    socket.destroy()
    void client.end({ timeout: 0 })
    for (const reject of pending) reject(error)
    pending.clear()
    for (const callback of callbacks) callback()
  }

  /** Settles as the driver does, but at once when the connection is lost: the driver forgets what it had not sent. */
  function follow<T>(query: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      pending.add(reject)
      watch.waiting(true)
      query.then((value) => {
        settled(reject)
        resolve(value)
      }, (error: unknown) => {
        settled(reject)
        reject(meaningOf(error))
      })
    })
  }

  function settled(reject: (error: Lost) => void): void {
    pending.delete(reject)
    if (pending.size === 0) watch.waiting(false)
  }

  function meaningOf(error: unknown): unknown {
    if (isFromServer(error)) {
      const said = readServerError(error)
      if (!isFatal(error)) return said
      loseBy(new Lost(said.message, said.code))
    } else {
      // A new one: the driver has hung the statement and its parameters on this.
      if (error instanceof OutOfRange) return new OutOfRange(error.message)
      loseBy(new Lost(reasonOf(error)))
    }
    return lost
  }

  function run(sql: string, parameters: readonly Value[]): Promise<Row[]> {
    if (parameters.length === 0 && (address.isPooled || !data.test(sql))) {
      return client.unsafe(sql).values() as unknown as Promise<Row[]>
    }
    const values = parameters.map(checked)
    const first = !prepared.has(sql)
    const prepare = !address.isPooled && (first ? prepared.size < maxPrepared : prepared.get(sql)!)
    if (first && prepare) prepared.set(sql, false)
    // The driver would ask for the types of parameters first, and send nothing more until it has them. They are all
    // sent as text, so that it need not: it takes over parameters that a query brings along.
    const query = client.unsafe(sql, [], { prepare, simple: false } as object)
    const rows = Object.assign(query, { parameters: values }).values() as unknown as Promise<Row[]>
    // Others with the same text go unprepared until then, or each would be prepared for itself.
    if (first && prepare) rows.then(() => prepared.set(sql, true), () => prepared.delete(sql))
    return rows
  }

  const session: Session = {
    host,
    // deno-lint-ignore require-await -- what is thrown on the way is a rejection, too
    async ask<R extends Row>(sql: string, parameters: readonly Value[] = []) {
      if (lost) throw lost
      return follow(run(sql, parameters)) as Promise<R[]>
    },

    async tell(sql) {
      if (lost) throw lost
      const result = await follow<unknown>(client.unsafe(sql))
      const last = Array.isArray(result) && Array.isArray(result[0]) ? result.at(-1) : result
      return String((last as { command?: string }).command)
    },

    isLost: () => lost !== undefined,
    heardAt: () => heardAt,

    whenLost(callback) {
      if (lost) callback()
      else callbacks.push(callback)
    },

    lose: (reason) => loseBy(new Lost(reason)),

    async end() {
      if (pending.size > 0) session.lose('the store was closed')
      if (lost !== undefined) return
      lost = new Lost('the store was closed')
      watch.stop()
      for (const callback of callbacks) callback()
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.once('finish', () => socket.destroy())
      const timer = setTimeout(() => socket.destroy(), leaveMs)
      void client.end({ timeout: 0 })
      await closed
      clearTimeout(timer)
    },
  }
  return session
}

type Client = ReturnType<typeof postgres>

/** A driver for one socket. When that is lost, so is the driver: which server is asked next is not for it to say. */
function createClient(socket: Socket, address: Address, purpose: Purpose): Client {
  let isTaken = false
  const options = {
    socket() {
      if (isTaken) throw new Lost('the connection was closed')
      isTaken = true
      return socket
    },
    // Each of these is set, so that no variable of the environment says something else.
    host: 'server',
    port: address.hosts[0]!.port,
    user: address.user,
    pass: address.password,
    database: address.database,
    ssl: false,
    max: 1,
    // A pooler may take the server away as soon as it has answered, with half of the next request: PgBouncer 1.18 did.
    max_pipeline: address.isPooled ? 0 : maxPipeline,
    max_lifetime: 0,
    idle_timeout: 0,
    connect_timeout: 0,
    keep_alive: 0,
    prepare: true,
    fetch_types: false,
    debug: false,
    connection: { ...address.startup, ...(address.isPooled ? {} : purpose.settings) },
    types,
    onnotice: () => {},
    onnotify: () => purpose.heard?.(),
  }
  return postgres(options as object) as unknown as Client
}

const verbatim = (text: string): string => text
const typeOf = <T>(from: readonly number[], parse: (text: string) => T) => ({
  to: from[0]!,
  from: [...from],
  serialize: String,
  parse,
})

/** How columns are read, by the numbers of their types. What is not among them is text. */
const types = {
  boolean: typeOf([16], (text) => text === 't'),
  integer64: typeOf([20], readInteger),
  number: typeOf([23, 21, 26, 700, 701], Number),
  // The driver would make objects of these: bytea, json, date, timestamp, timestamptz, jsonb.
  text: typeOf([25, 17, 114, 1082, 1114, 1184, 3802], verbatim),
}

function readInteger(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new OutOfRange('an integer is beyond ±2^53')
  return number
}

/** What the driver would stumble over in the middle of what it sends is not given to it. */
function checked(value: Value): Value {
  if (
    value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  ) {
    return value
  }
  throw new TypeError(`A parameter is ${value === undefined ? 'undefined' : typeof value}.`)
}
