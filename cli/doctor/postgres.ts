/** Checks of PostgreSQL, and of the servers that share it. */
import { connect } from '../../adapters/stores/postgres/database.ts'
import { parseUrl } from '../../adapters/stores/postgres/url.ts'
import { createClock } from '../../core/lib/clock.ts'
import { delay } from '../../core/lib/promise.ts'
import type { ReplicaProgress } from '../../core/ports/replicas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Io } from '../output/print.ts'
import { currentUser } from '../store-url.ts'
import { isLoopback } from '../verification/credential.ts'
import { findSkew, findStaleness, type Judge } from './check.ts'

export async function checkPostgres(
  judge: Judge,
  storeUrl: string,
  store: Store,
  env: Io['env'],
): Promise<void> {
  const { tls: { mode }, hosts, isPooled } = parseUrl(storeUrl, { environment: env, user: currentUser(env) })
  const isRemote = hosts.some(({ name, isSocket }) =>
    !isSocket && !isLoopback({ hostname: name === '::1' ? '[::1]' : name })
  )
  judge(
    'postgres-tls',
    isRemote && mode !== 'verify-full' && {
      message: `sslmode=${mode} does not tell the store from a machine that intercepts the connection.`,
      command: 'sslmode=verify-full',
    },
  )
  judge(
    'postgres-pooler',
    !isPooled && await isBehindPooler(storeUrl) && {
      message: 'The store is behind a pooler in transaction mode, and its URL does not say so.',
      command: 'pooler=transaction',
    },
  )

  const servers = await readServers(store)
  const skewMs = createClock(() => store.clock?.()).skewMs()
  judge('store-clock', findSkew('this machine', 'the store', skewMs, 1_000))
  judge('server-clocks', ...servers.map(({ name, skewMs }) => findSkew(name, 'the store', skewMs, 0)))
  judge('server-staleness', ...servers.map(({ name, leaseMs }) => findStaleness(name, leaseMs)))
  judge(
    'server-revisions',
    ...servers.map(({ name, applied }) =>
      !applied && {
        message: `${name} does not confirm the current data: it was killed, or cannot reach the store.`,
        command: `restart ${name}`,
      }
    ),
  )
}

/** While a transaction has the server connection that answered last, a pooler has to take another one. */
async function isBehindPooler(storeUrl: string): Promise<boolean> {
  const database = connect(storeUrl)
  const readPid = async () => String(await database.lookUp('SELECT pg_backend_pid()'))
  try {
    const pid = await readPid()
    return await database.transaction(async (query) => {
      await query('SELECT 1')
      return await readPid() !== pid
    })
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
