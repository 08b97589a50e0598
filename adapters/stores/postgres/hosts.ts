/** The way to whichever host of a URL takes writes. */
import { type Connection, type ConnectionOptions, createConnection } from './connection.ts'
import { ConnectionLostError, isPermanent, isStartupError } from './errors.ts'
import { type Host, nameOf, type PostgresUrl } from './url.ts'

export type OpenOptions = Omit<ConnectionOptions, 'connectTimeoutMs'>

export interface Hosts {
  /** Connects to the first host that will do, beginning with the one that was found last. */
  open(options: OpenOptions): Promise<Connection>
  /** Why connecting failed last, unless it has succeeded since. */
  failure(): ConnectionLostError | undefined
  /** Destroys a connection whose server does not answer any more. */
  probe(connection: Connection): Promise<void>
  /** Opens nothing more. */
  close(): void
  /** Ends all connections. What is in flight has that long. */
  end(withinMs: number): Promise<void>
}

const SERVER_STATE =
  `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'`

export function createHosts(url: PostgresUrl, connectTimeoutMs: number): Hosts {
  const connections = new Set<Connection>()
  let last = 0
  let failure: ConnectionLostError | undefined
  let isClosed = false

  function connectTo(host: Host, options: ConnectionOptions): Connection {
    const connection = createConnection(host, url, options)
    connections.add(connection)
    void connection.lost.then(() => connections.delete(connection))
    return connection
  }

  return {
    failure: () => failure,
    close: () => void (isClosed = true),
    end: async (withinMs) => void await Promise.all(Array.from(connections, ({ end }) => end(withinMs))),

    async open(options) {
      const failures: (readonly [host: Host, error: ConnectionLostError])[] = []
      for (const host of [...url.hosts.slice(last), ...url.hosts.slice(0, last)]) {
        if (isClosed) throw new ConnectionLostError('it was closed')
        const connection = connectTo(host, { connectTimeoutMs, ...options })
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
      throw failure = summaryOf(failures)
    },

    async probe(connection) {
      const heardAt = connection.lastMessageAt()
      const silenceMs = 2_000
      const other = connectTo(connection.host, { connectTimeoutMs: silenceMs, silenceMs })
      const error = await other.query('').then(() => undefined, (error: ConnectionLostError) => error)
      other.destroy('it is not needed any more')
      // An error with a code comes from the server.
      if (error && error.code === undefined && connection.lastMessageAt() === heardAt) {
        connection.destroy('the server does not answer any more')
      }
    },
  }
}

async function checkPrimary(connection: Connection): Promise<void> {
  const [[isStandby, isReadOnly] = []] = await connection.query(SERVER_STATE)
  if (isStandby) throw new ConnectionLostError('the server is a standby')
  if (isReadOnly) throw new ConnectionLostError('the server takes no writes')
}

function summaryOf(
  failures: readonly (readonly [host: Host, error: ConnectionLostError])[],
): ConnectionLostError {
  const hint = ' (a pooler in transaction mode needs pooler=transaction in the URL)'
  const reasons = failures.map(([host, error]) =>
    `${failures.length > 1 ? `${nameOf(host)}: ` : ''}${error.message}${isStartupError(error) ? hint : ''}`
  )
  const isFinal = failures.every(([, error]) => isPermanent(error))
  return new ConnectionLostError(reasons.join('; '), isFinal ? failures[0]![1].code : undefined)
}
