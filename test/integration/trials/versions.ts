/**
 * Runs replicas of this version on schemas of others: `node test/integration/trials/versions.ts`. A newer one is served while it
 * says that it may be, and refused with a reason otherwise, by those that start and by those that run; an older one is
 * migrated by who serves, and refused by who only looks.
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
import { endWithin, judge } from './verdict.ts'

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
    await running.client.ask(READ, { key })
    console.log(`A newer program adds version ${LATEST + 1}, which programs of this one may go on with:`)
    await addVersion(sql, LATEST)
    await new Promise((resolve) => setTimeout(resolve, refusedWithinMs))
    judge('who runs goes on', await statusOf(running, key) === 200)
    const starting = await startReplica('starting', url, NO_LIMITS)
    judge('who starts serves it', await statusOf(starting, key) === 200)
    await starting.stop()

    console.log(`It then says that they may not:`)
    await sql`update partner_api.store set served_from = ${LATEST + 1}`
    await until(
      async () => await statusOf(running, key) === 503,
      'the replica to refuse',
      refusedWithinMs + 500,
    )
    const reason = running.events().find(({ event }) => event === 'store_unavailable')?.error
    console.log(`  who runs says: ${reason}`)
    judge('who runs answers 503 and logs the reason', /schema version/.test(reason ?? ''))
    const refused = await ending(
      startProgram(['serve', '--port', '0'], { env: { PARTNER_API_STORE: url } }),
    )
    console.log(`  who starts ends with ${refused.code}: ${refused.stderr.trim()}`)
    judge(
      'who starts ends with 3 and the reason',
      refused.code === 3 && /newer program/.test(refused.stderr),
    )

    console.log('It is put back:')
    await sql`update partner_api.store set served_from = ${LATEST}`
    await until(
      async () => await statusOf(running, key) === 200,
      'the replica to recover',
      refusedWithinMs + 500,
    )
    judge('who runs serves again by itself', true)
  } finally {
    await sql.end()
    await running.stop()
  }
}

async function tryOlder(url: string): Promise<void> {
  console.log('A database holds no schema yet:')
  const found = await openPostgresStore(url, { migrate: false }).catch((error: unknown) => error)
  judge('who may not migrate it is refused', found instanceof StoreError && /migrate/.test(found.message))
  const listed = await runProgram(['keys', 'list'], { env: { PARTNER_API_STORE: url } })
  console.log(`  keys list ends with ${listed.code}: ${listed.stderr.trim()}`)
  judge('a command that only looks ends with 3', listed.code === 3)
  const sql = postgres(url, { max: 1 })
  try {
    const schemas = await sql`select 1 from pg_namespace where nspname = 'partner_api'`
    judge('neither of them made anything', schemas.length === 0)
    const serving = await startReplica('first', url)
    judge('who serves migrates it', (await serving.client.ask('/health')).status === 200)
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
  return (await client.ask(READ, { key })).status
}
