/** One connection to one server. The only file that uses the driver, postgres 3.4. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls'
import postgres, { type Sql } from 'postgres'
import type { SqlValue } from '../sql/row-format.ts'
import { ConnectionLostError, fromDriver } from './errors.ts'
import type { Host, PostgresUrl } from './url.ts'

/** Integers are numbers; one beyond ±2^53 is a `StoreError`. Instants, JSON, decimals and lists are text. */
export type PostgresValue = SqlValue | boolean

/** The columns in the order of the statement. */
export type PostgresRow = readonly PostgresValue[]

/** Runs a statement with the parameters `$1`, `$2`, …; lists go as the text of `listText`, cast to their type. */
export type PostgresQuery = <R extends PostgresRow>(
  sql: string,
  parameters?: readonly PostgresValue[],
) => Promise<R[]>

/** A connection to one server. */
export interface PostgresConnection {
  isLost(): boolean
  /** Resolves when it is lost, but not when it was ended. */
  readonly lost: Promise<void>
  /** When the last message of the server arrived, by `performance.now()`. */
  lastMessageAt(): number
  /** Destroys the socket and rejects what is in flight. */
  destroy(reason: string): void
  /** Sends a statement behind those in flight. @throws {SqlError | ConnectionLostError} */
  query(text: string, parameters?: readonly PostgresValue[]): Promise<Rows>
  /** Closes it when nothing is in flight or the time is up. */
  end(withinMs: number): Promise<void>
}

export interface ConnectionOptions {
  /** Milliseconds of silence after which connecting fails. */
  readonly connectTimeoutMs: number
  /** Milliseconds of silence, while a statement is in flight, after which `onSilent` is called. */
  readonly silenceMs: number
  /** Default: destroys the connection. */
  readonly onSilent?: (() => void) | undefined
  readonly onNotify?: () => void
  /** Settings of the session, which a pooler does not take. */
  readonly settings?: Readonly<Record<string, string>>
}

/** `command` is the server's name for the statement, such as COMMIT. */
type Rows = PostgresRow[] & { readonly command?: string }

/**
 * A driver with a pool of one, which is over when its socket is. With a larger pool, a server that ends a connection
 * within a transaction crashes the process, or the rest of the transaction runs outside of it:
 * https://github.com/porsager/postgres/issues/1208 and /pull/1155. It is
 * - connecting from its first statement on, until one is answered. After `connectTimeoutMs` of silence, it is lost.
 * - ready then. After `silenceMs` of silence with a statement in flight, it is lost, or `onSilent` is called.
 * - lost for good, also when its socket closes or it is destroyed. What is in flight is rejected.
 * - ended by `end`, which gives what is in flight some time.
 */
export function createConnection(
  host: Host,
  url: PostgresUrl,
  options: ConnectionOptions,
): PostgresConnection {
  const { promise: lost, resolve: resolveLost } = Promise.withResolvers<void>()
  let socket: Socket | undefined
  let loss: Error | undefined
  let isReady = false

  const limitMs = () => isReady ? options.silenceMs : options.connectTimeoutMs
  const inFlight = createInFlight(limitMs, () => {
    if (isReady && options.onSilent) options.onSilent()
    else destroy(new ConnectionLostError(`no answer within ${limitMs()} ms`))
  })

  /** Called by the driver, and again when it wants to reconnect. */
  async function open(): Promise<Socket> {
    if (loss || socket) throw loss ?? new ConnectionLostError('the connection was closed')
    const opened = await openSocket(host, url.tls, inFlight.onMessage, (created) => {
      socket = created.on('error', (error) => destroy(fromDriver(error)))
        .on('close', () => destroy(new ConnectionLostError('the connection was closed')))
    })
    return opened.on('data', inFlight.onMessage)
  }

  function destroy(error: Error): void {
    if (loss) return
    loss = error
    // The driver removes all listeners of a socket that is closed.
    socket?.on('error', () => {}).destroy()
    void sql.end({ timeout: 0 })
    resolveLost()
    inFlight.rejectAll(error)
  }

  const sql = openDriver(url, options, open)
  const send = createSender(sql, url.isPooled)

  async function query(text: string, parameters: readonly PostgresValue[] = []): Promise<Rows> {
    if (loss) throw loss
    // Not awaited: the driver would send it later, perhaps behind the next one.
    const rows = send(text, parameters).then((found) => {
      isReady = true
      return found
    }, (failure) => {
      const error = fromDriver(failure)
      if (error instanceof ConnectionLostError) destroy(error)
      throw error
    })
    return await inFlight.track(rows)
  }

  return {
    isLost: () => loss !== undefined,
    lost,
    lastMessageAt: inFlight.lastMessageAt,
    destroy: (reason) => destroy(new ConnectionLostError(reason)),
    query,
    async end(withinMs) {
      loss ??= new ConnectionLostError('it was closed')
      await sql.end({ timeout: withinMs / 1000 })
      socket?.destroy()
    },
  }
}

/** The statements in flight. Calls `onSilent` each time that they get no message for the limit. */
function createInFlight(limitMs: () => number, onSilent: () => void) {
  const rejects = new Set<(error: unknown) => void>()
  let lastMessageAt = 0
  let timer: NodeJS.Timeout | undefined

  function monitor(since: number = performance.now()): void {
    // Immediate: after this process was suspended, what arrived during that time is read first.
    const own = timer = setTimeout(() =>
      setImmediate(() => {
        if (timer !== own) return
        const lastActivityAt = Math.max(since, lastMessageAt)
        if (performance.now() - lastActivityAt < limitMs()) return monitor(lastActivityAt)
        onSilent()
        if (timer === own) monitor()
      }), Math.max(1, since + limitMs() - performance.now()))
  }

  function stopIfIdle(): void {
    if (rejects.size > 0) return
    clearTimeout(timer)
    timer = undefined
  }

  return {
    /** Settles as `rows` do, or rejects when `rejectAll` is called before that. */
    track(rows: Promise<Rows>): Promise<Rows> {
      return new Promise((resolve, reject) => {
        if (rejects.size === 0) monitor()
        rejects.add(reject)
        rows.finally(() => {
          rejects.delete(reject)
          stopIfIdle()
        }).then(resolve, reject)
      })
    },
    rejectAll(error: Error): void {
      for (const reject of rejects) reject(error)
      rejects.clear()
      stopIfIdle()
    },
    onMessage: () => void (lastMessageAt = performance.now()),
    lastMessageAt: () => lastMessageAt,
  }
}

/** Beyond these, texts that are made up as needed would fill the memory of the server. */
const maxPrepared = 500
/** Statements that are worth preparing although they have no parameters. */
const preparable = /^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE)\b[^;]*$/i

function createSender(sql: Sql, isPooled: boolean) {
  /** False while a statement is being prepared. */
  const prepared = new Map<string, boolean>()

  return (text: string, parameters: readonly PostgresValue[]): Promise<Rows> => {
    if (parameters.length === 0 && (isPooled || !preparable.test(text))) return sql.unsafe(text).values()
    if (parameters.includes(undefined as never)) throw new TypeError('A parameter is undefined.')
    const isPrepared = prepared.get(text)
    const prepare = !isPooled && (isPrepared ?? prepared.size < maxPrepared)
    // For arguments, the driver would ask for their types first: a second round trip, and a mix-up when it prepares a
    // statement again within a pipeline. It takes over parameters that a query already has.
    const query = sql.unsafe(text, [], { prepare, simple: false } as object)
    const rows = Object.assign(query, { parameters: [...parameters] }).values()
    if (isPrepared === undefined && prepare) {
      // Meanwhile, the same text is sent unprepared: the driver would prepare it again each time.
      prepared.set(text, false)
      rows.then(() => prepared.set(text, true), () => prepared.delete(text))
    }
    return rows
  }
}

const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/** @param onSocket Called with the socket before it connects, and with the encrypted one in its place. */
async function openSocket(
  { name, port, isSocket }: Host,
  settings: PostgresUrl['tls'],
  onMessage: () => void,
  onSocket: (socket: Socket) => void,
): Promise<Socket> {
  const tls = settings.mode === 'disable' || isSocket ? undefined : await tlsOptions(name, settings)

  async function next(source: Socket, event: string): Promise<unknown> {
    const [value] = await once(source, event)
    onMessage()
    return value
  }

  const socket = isSocket ? connectSocket(name) : connectSocket({ host: name, port, noDelay: true })
  // Not chained: on workerd these return nothing.
  socket.unref()
  onSocket(socket)
  await next(socket, 'connect')
  socket.setKeepAlive(true, 5_000)
  if (!tls) return socket
  socket.write(sslRequest)
  // Whatever follows the one byte is not from the encrypted server.
  const answer = String(await next(socket, 'data'))
  if (answer === 'N' && settings.mode === 'prefer') return socket
  if (answer !== 'S') throw new ConnectionLostError('the server takes no encrypted connections')
  const encrypted = connectTls({ socket, ...tls })
  onSocket(encrypted)
  await next(encrypted, 'secureConnect')
  encrypted.unref()
  return encrypted
}

async function tlsOptions(name: string, { mode, ...files }: PostgresUrl['tls']): Promise<TlsOptions> {
  const [ca, cert, key] = await Promise.all(
    [files.rootFile, files.certFile, files.keyFile].map((file) =>
      file && readFile(file).catch(({ message }) => {
        throw new ConnectionLostError(`a file named in its URL cannot be read (${message})`)
      })
    ),
  )
  return {
    host: name,
    // RFC 6066 §3: not an address.
    servername: isIP(name) === 0 ? name : '',
    rejectUnauthorized: mode === 'verify-ca' || mode === 'verify-full',
    ...(mode === 'verify-ca' && { checkServerIdentity: () => undefined }),
    ...(ca && { ca }),
    ...(cert && key && { cert, key }),
  }
}

/** All options are given, so that no environment variable gives one. */
function openDriver(url: PostgresUrl, options: ConnectionOptions, socket: () => Promise<Socket>): Sql {
  return postgres({
    socket,
    host: 'server',
    port: 5432,
    user: url.user,
    pass: url.password,
    database: url.database,
    ssl: false,
    max: 1,
    max_lifetime: 0,
    idle_timeout: 0,
    connect_timeout: 0,
    keep_alive: 0,
    prepare: true,
    fetch_types: false,
    debug: false,
    // PgBouncer 1.18 gives the server connection away once it has answered, with half of the next statement.
    max_pipeline: url.isPooled ? 0 : 1000,
    connection: { ...url.startup, ...(url.isPooled ? {} : options.settings) },
    onnotice: () => {},
    onnotify: () => options.onNotify?.(),
    types: {
      bigint: { to: 20, from: [20], serialize: String, parse: readInteger },
      // The driver would make objects of bytea, json, date, timestamp, timestamptz and jsonb.
      text: {
        to: 25,
        from: [17, 114, 1082, 1114, 1184, 3802],
        serialize: String,
        parse: (text: string) => text,
      },
    },
  } as object)
}

function readInteger(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError('an integer is beyond ±2^53')
  return number
}
