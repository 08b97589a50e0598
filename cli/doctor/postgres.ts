/** Checks of PostgreSQL, and of the servers that share it. */
import { connect } from '../../adapters/stores/postgres/database.ts'
import { SERVER_NOW } from '../../adapters/stores/postgres/sql.ts'
import { parseUrl, type PostgresUrl } from '../../adapters/stores/postgres/url.ts'
import { createClock } from '../../core/lib/clock.ts'
import { delay } from '../../core/lib/promise.ts'
import type { ReplicaProgress } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Io } from '../output/print.ts'
import { currentUser } from '../store-url.ts'
import { isLoopback } from '../verification/credential.ts'
import { type Checks, error, findSkew, findStaleness, warning } from './check.ts'

interface PostgresContext {
  readonly url: PostgresUrl
  readonly skewMs: number
  readonly servers: readonly ReplicaProgress[]
  /** Ids of the servers that neither respond nor deregistered. */
  readonly silent: readonly string[]
  /** Such as 180001. */
  readonly version: number
  readonly connections: number
  readonly maxConnections: number
  readonly hasPooler: boolean
}

export const POSTGRES_CHECKS: Checks<PostgresContext> = {
  'store-clock': ({ skewMs }) => findSkew('this machine', 'the store', skewMs, 1_000),

  'server-clocks': ({ servers }) =>
    servers.flatMap(({ name, skewMs }) => findSkew(name, 'the store', skewMs, 0)),

  'servers-current': ({ servers, silent }) =>
    servers.filter(({ id, applied }) => !applied || silent.includes(id)).map(({ name }) =>
      warning(
        `${name} does not confirm the current data: it was killed, or cannot reach the store.`,
        `restart ${name}`,
      )
    ),

  'server-staleness': ({ servers }) => servers.flatMap(({ name, leaseMs }) => findStaleness(name, leaseMs)),

  'postgres-tls': ({ url: { tls: { mode }, hosts } }) =>
    mode !== 'verify-full' && hosts.some(({ name, isSocket }) =>
      !isSocket && !isLoopback({ hostname: name === '::1' ? '[::1]' : name })
    ) &&
    warning(
      `sslmode=${mode} does not tell the store from a machine that intercepts the connection.`,
      'sslmode=verify-full',
    ),

  'postgres-pooler': ({ url, hasPooler }) =>
    hasPooler && !url.isPooled &&
    error(
      'The store is behind a pooler in transaction mode, and its URL does not say so.',
      'pooler=transaction',
    ),

  'postgres-version': ({ version }) =>
    version < 150_000 &&
    warning(`PostgreSQL ${Math.floor(version / 10_000)} is older than 15.`, 'pg_upgrade'),

  'postgres-connections': ({ connections, maxConnections }) =>
    connections > maxConnections * 0.9 &&
    warning(`${connections} of ${maxConnections} connections of PostgreSQL are in use.`, 'max_connections'),
}

/** Reads what the checks judge. */
export async function readPostgres(storeUrl: string, store: Store, env: Io['env']): Promise<PostgresContext> {
  const database = connect(storeUrl)
  try {
    const servers = await readServers(store)
    const silent = await database.read<[id: string]>(
      `SELECT id FROM partner_api.replica WHERE seen_at + lease_ms + 5000 < ${SERVER_NOW}`,
    )
    const [figures] = await database.read<[version: number, connections: number, maxConnections: number]>(`
      SELECT current_setting('server_version_num')::int, (SELECT sum(numbackends) FROM pg_stat_database)::int,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int`)
    const [version, connections, maxConnections] = figures!
    const readPid = async () => String(await database.lookUp('SELECT pg_backend_pid()'))
    const pid = await readPid()
    // While a transaction has the server connection that answered last, a pooler has to take another one.
    const hasPooler = await database.transaction(async (query) => {
      await query('SELECT 1')
      return await readPid() !== pid
    })
    return {
      url: parseUrl(storeUrl, { environment: env, user: currentUser(env) }),
      skewMs: createClock(() => store.clock?.()).skewMs(),
      silent: silent.map(([id]) => id),
      ...{ servers, version, connections, maxConnections, hasPooler },
    }
  } finally {
    await database.close()
  }
}

/** Gives servers the time that they need to confirm a change. */
async function readServers(store: Store): Promise<readonly ReplicaProgress[]> {
  const revision = await store.revision()
  for (let attempt = 1;; attempt++) {
    const servers = await store.replicas?.progress(revision) ?? []
    if (attempt === 10 || servers.every(({ applied }) => applied)) return servers
    await delay(250)
  }
}
