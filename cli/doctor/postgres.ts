/** Checks of PostgreSQL, and of the servers that share it. */
import { connect, type PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { MIGRATIONS } from '../../adapters/stores/postgres/migrate.ts'
import { parseUrl } from '../../adapters/stores/postgres/url.ts'
import { createClock } from '../../core/lib/clock.ts'
import { delay } from '../../core/lib/promise.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Io } from '../output/print.ts'
import { currentUser } from '../store/url.ts'
import { isLoopback } from '../verify/credential.ts'
import { type Check, checkIndexes, findMany, findSkew, findStaleness, issue } from './check.ts'

export async function checkPostgres(check: Check, storeUrl: string, store: Store, env: Io['env']) {
  const { tls: { mode }, hosts, isPooled } = parseUrl(storeUrl, { environment: env, user: currentUser(env) })
  const isRemote = hosts.some(({ name, isSocket }) =>
    !isSocket && !isLoopback({ hostname: name === '::1' ? '[::1]' : name })
  )
  const unsafe =
    `sslmode=${mode} does not verify that the server is the store, so the connection can be intercepted.`
  check('postgres-tls', isRemote && mode !== 'verify-full' && issue(unsafe, 'sslmode=verify-full'))
  const database = connect(storeUrl)
  try {
    const isUnknown = !isPooled && await isBehindPooler(database)
    const pooler = 'The store is behind a pooler in transaction mode, and its URL does not say so.'
    check('postgres-pooler', isUnknown && issue(pooler, 'pooler=transaction'))
    await checkDatabase(check, database)
  } finally {
    await database.close()
  }

  const servers = await readServers(store)
  const skewMs = createClock(() => store.clock()).skewMs()
  check('store-clock', findSkew('this machine', 'the store', skewMs, 1_000))
  check('server-clocks', ...servers.map(({ name, skewMs }) => findSkew(name, 'the store', skewMs, 0)))
  check('server-staleness', ...servers.map(({ name, leaseMs }) => findStaleness(name, leaseMs)))
  const late = 'does not confirm the current data: it was killed, or cannot reach the store.'
  const outdated = servers.filter(({ applied }) => !applied)
  check('server-revisions', ...outdated.map(({ name }) => issue(`${name} ${late}`, `restart ${name}`)))
}

/** Whether there is a pooler: while a transaction has its server connection, another query gets a different one. */
async function isBehindPooler(database: PostgresDatabase): Promise<boolean> {
  const readPid = async () => String(await database.lookUp('SELECT pg_backend_pid()'))
  const pid = await readPid()
  return await database.transaction(async (query) => {
    await query('SELECT 1')
    return await readPid() !== pid
  })
}

async function checkDatabase(check: Check, { read }: PostgresDatabase): Promise<void> {
  type Row = [fsync: string, role: string, isSuperuser: boolean, readable: string, indexes: string]
  const [row] = await read<Row>(`
    SELECT current_setting('fsync'), current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
      (SELECT coalesce(string_agg(DISTINCT table_name, ' '), '') FROM information_schema.table_privileges
        WHERE table_schema = 'partner_api' AND grantee = 'PUBLIC' AND privilege_type = 'SELECT'),
      (SELECT string_agg(indexname, ' ') FROM pg_indexes WHERE schemaname = 'partner_api')`)
  const [fsync, role, isSuperuser, readable, indexes] = row!
  const crash = 'A crash of the database server can destroy the store: fsync is off.'
  const createRole = 'CREATE ROLE partner_api LOGIN; CREATE DATABASE partners OWNER partner_api'
  const revokeTables = 'REVOKE ALL ON ALL TABLES IN SCHEMA partner_api FROM PUBLIC'
  check(
    'postgres-server',
    fsync !== 'on' && issue(crash, 'ALTER SYSTEM SET fsync = on'),
    isSuperuser && issue(`The store is used as the superuser ${role}.`, createRole),
    findMany('Tables that every role may read', readable.split(' ').filter(Boolean), revokeTables),
  )
  checkIndexes(check, MIGRATIONS, indexes.split(' '))
}

/** Gives servers the time that they need to confirm a change. */
async function readServers(store: Store) {
  const revision = await store.revision()
  for (let attempt = 1;; attempt++) {
    const servers = await store.replicas.progress(revision)
    if (attempt === 10 || servers.every(({ applied }) => applied)) return servers
    await delay(250)
  }
}
