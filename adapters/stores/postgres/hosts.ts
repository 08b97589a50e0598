import { type ConnectionOptions, createConnection, type PostgresConnection } from './connection.ts'
import { ConnectionLostError, isPermanent, isStartupError } from './errors.ts'
import { type Host, nameOf, type PostgresUrl } from './url.ts'

/** Milliseconds of silence after which a server is probed. */
const silenceMs = 2_000

const serverState =
  `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'`

/** The servers of a URL. */
export interface Hosts {
  /**
   * Connects to the first host that will do, beginning with the one that was found last.
   *
   * @param options Without `silenceMs`, statements may be silent as long as their server is alive.
   */
  open(options: Partial<ConnectionOptions>): Promise<PostgresConnection>
  /** Why connecting failed last, unless it has succeeded since. */
  failure(): ConnectionLostError | undefined
  isClosed(): boolean
  /** Opens nothing more. */
  close(): void
  /** Ends all connections. What is in flight has that long. */
  end(withinMs: number): Promise<void>
}

export function createHosts(url: PostgresUrl, connectTimeoutMs: number): Hosts {
  const connections = new Set<PostgresConnection>()
  let last = 0
  let failure: ConnectionLostError | undefined
  let isClosed = false

  function connectTo(host: Host, options: Partial<ConnectionOptions>): PostgresConnection {
    const onSilent = options.silenceMs === undefined ? () => void probe(host, connection) : undefined
    const connection = createConnection(host, url, { connectTimeoutMs, silenceMs, ...options, onSilent })
    connections.add(connection)
    void connection.lost.then(() => connections.delete(connection))
    return connection
  }

  /** A long statement is silent, too: only a server that does not take a connection either is gone. */
  async function probe(host: Host, connection: PostgresConnection): Promise<void> {
    const lastMessageAt = connection.lastMessageAt()
    const other = connectTo(host, { connectTimeoutMs: silenceMs, silenceMs })
    const error = await other.query('').then(() => undefined, (error: ConnectionLostError) => error)
    other.destroy('it is not needed any more')
    // An error with a code comes from the server.
    if (error && error.code === undefined && connection.lastMessageAt() === lastMessageAt) {
      connection.destroy('the server does not answer any more')
    }
  }

  return {
    async open(options) {
      const failures: Failure[] = []
      for (const host of [...url.hosts.slice(last), ...url.hosts.slice(0, last)]) {
        if (isClosed) throw new ConnectionLostError('it was closed')
        const connection = connectTo(host, options)
        try {
          await (url.primaryOnly ? checkPrimary(connection) : connection.query(''))
          last = url.hosts.indexOf(host)
          failure = undefined
          return connection
        } catch (error) {
          connection.destroy('it cannot be used')
          failures.push([host, error as ConnectionLostError])
        }
      }
      failure = summaryOf(failures)
      throw failure
    },

    failure: () => failure,
    isClosed: () => isClosed,
    close() {
      isClosed = true
    },

    async end(withinMs) {
      await Promise.all(Array.from(connections, (connection) => connection.end(withinMs)))
    },
  }
}

type Failure = readonly [host: Host, error: ConnectionLostError]

async function checkPrimary(connection: PostgresConnection): Promise<void> {
  const [[isStandby, isReadOnly] = []] = await connection.query(serverState)
  if (isStandby) throw new ConnectionLostError('the server is a standby')
  if (isReadOnly) throw new ConnectionLostError('the server takes no writes')
}

function summaryOf(failures: readonly Failure[]): ConnectionLostError {
  const hint = ' (a pooler in transaction mode needs pooler=transaction in the URL)'
  const reasons = failures.map(([host, error]) =>
    `${failures.length > 1 ? `${nameOf(host)}: ` : ''}${error.message}${isStartupError(error) ? hint : ''}`
  )
  const isFinal = failures.every(([, error]) => isPermanent(error))
  return new ConnectionLostError(reasons.join('; '), isFinal ? failures[0]![1].code : undefined)
}
