/**
 * Runs replicas of this version on schemas of others: `node test/integration/trials/versions.ts`. A newer schema is served if it
 * permits that, and otherwise refused with a reason by starting and running replicas. An older one is migrated by `serve`,
 * and refused by commands that only read.
 */
import postgres from 'postgres'
import type { Sql } from 'postgres'
import { LATEST } from '../../../adapters/stores/postgres/migrate.ts'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { StoreError } from '../../../adapters/stores/store-error.ts'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { ending, runProgram, startProgram } from '../../support/cli-program.ts'
import { type ReplicaProcess, startReplica } from './replicas.ts'
import { createTenant, NO_LIMITS, READ } from './tenant.ts'
import { check, endWithin } from './verdict.ts'

const refusedWithinMs = 1000 + 1000

endWithin(120)
const server = await startServer()
try {
  await tryNewer(await server.createDatabase())
  await tryOlder(await server.createDatabase())
} finally {
  await server.close()
}

async function tryNewer(url: string): Promise<void> {
  const store = await openPostgresStore(url)
  const { text: key } = await (await createTenant(store)).issue()
  await store.close()
  const running = await startReplica('running', url, NO_LIMITS)
  const sql = postgres(url, { max: 1 })
  try {
    await running.client.send(READ, { key })
    console.log(`A newer program adds version ${LATEST + 1}, which this version may serve:`)
    await addVersion(sql, LATEST)
    await new Promise((resolve) => setTimeout(resolve, refusedWithinMs))
    check('a running replica continues', await statusOf(running, key) === 200)
    const starting = await startReplica('starting', url, NO_LIMITS)
    check('a starting replica serves it', await statusOf(starting, key) === 200)
    await starting.stop()

    console.log('The schema then excludes this version:')
    await sql`update partner_api.store set served_from = ${LATEST + 1}`
    await until(
      async () => await statusOf(running, key) === 503,
      'the replica to refuse',
      refusedWithinMs + 500,
    )
    const reason = running.events().find(({ event }) => event === 'store_unavailable')?.error
    console.log(`  the running replica logs: ${reason}`)
    check('the running replica answers 503 and logs the reason', /schema version/.test(reason ?? ''))
    const refused = await ending(
      startProgram(['serve', '--port', '0'], { env: { PARTNER_API_STORE: url } }),
    )
    console.log(`  the starting replica ends with ${refused.code}: ${refused.stderr.trim()}`)
    check(
      'the starting replica ends with 3 and the reason',
      refused.code === 3 && /newer program/.test(refused.stderr),
    )

    console.log('The schema permits this version again:')
    await sql`update partner_api.store set served_from = ${LATEST}`
    await until(
      async () => await statusOf(running, key) === 200,
      'the replica to recover',
      refusedWithinMs + 500,
    )
    check('the running replica recovers', true)
  } finally {
    await sql.end()
    await running.stop()
  }
}

async function tryOlder(url: string): Promise<void> {
  console.log('The database has no schema:')
  const found = await openPostgresStore(url, { migrate: false }).catch((error: unknown) => error)
  check(
    'an account that may not migrate is refused',
    found instanceof StoreError && found.remedy?.command === 'migrate',
  )
  const listed = await runProgram(['keys', 'list'], { env: { PARTNER_API_STORE: url } })
  console.log(`  keys list ends with ${listed.code}: ${listed.stderr.trim()}`)
  check('a command that only reads ends with 3', listed.code === 3)
  const sql = postgres(url, { max: 1 })
  try {
    const schemas = await sql`select 1 from pg_namespace where nspname = 'partner_api'`
    check('neither created a schema', schemas.length === 0)
    const serving = await startReplica('first', url)
    check('serve migrates it', (await serving.client.send('/health')).status === 200)
    await serving.stop()
  } finally {
    await sql.end()
  }
}

/** As a newer program's migration would. */
async function addVersion(sql: Sql, servedFrom: number): Promise<void> {
  await sql.begin(async (sql) => {
    await sql`insert into partner_api.migration (version, name, applied_at)
      values (${LATEST + 1}, 'of a newer program', 0)`
    await sql`alter table partner_api.partner add column newer text`
    await sql`update partner_api.store set served_from = ${servedFrom}`
  })
}

async function statusOf({ client }: ReplicaProcess, key: string): Promise<number> {
  return (await client.send(READ, { key })).status
}
