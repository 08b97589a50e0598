/** What becomes of a change whose commit nobody confirmed, on a way to a server that breaks at the worst moment. */
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { createAuditLog } from '../../adapters/stores/postgres/audit.ts'
import { connect } from '../../adapters/stores/postgres/database.ts'
import type { Database } from '../../adapters/stores/postgres/database.ts'
import { CommitUnknownError } from '../../adapters/stores/postgres/errors.ts'
import { migrate } from '../../adapters/stores/postgres/migrate.ts'
import { createAdministration } from '../../adapters/stores/postgres/partners-and-keys.ts'
import { createRevisions } from '../../adapters/stores/postgres/revisions.ts'
import { StoreError } from '../../adapters/stores/store-error.ts'
import { partner, stamp } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { intrude } from '../postgres/intruder.ts'
import { startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'

const reason = hasServer()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}

const server = await startServer()
t.teardown(() => server.close())

type Fate = 'fine' | 'committed' | 'rolled back' | 'under way' | 'away'

/** A store whose transactions meet these fates in turn, the last one again and again. */
async function open(t: Test, ...fates: Fate[]) {
  const url = await server.createDatabase()
  const database = connect(url)
  t.teardown(() => database.close())
  await migrate(database, undefined)
  const released = Promise.withResolvers<void>()
  let told = 0
  const lost = () => new StoreError('unreachable', 'lost', { cause: new CommitUnknownError('lost') })

  const troubled: Database = {
    ...database,
    notify() {
      told++
      return database.notify()
    },
    async transaction(work, options) {
      const fate = fates.length > 1 ? fates.shift()! : fates[0]!
      if (fate === 'away') throw new StoreError('unreachable', 'away')
      if (fate === 'under way') {
        const done = Promise.withResolvers<void>()
        void database.transaction(async (query, rollback) => {
          await work(query, rollback)
          done.resolve()
          await released.promise
        }, options)
        await done.promise
        throw lost()
      }
      const result = await database.transaction(async (query, rollback) => {
        const result = await work(query, rollback)
        if (fate === 'rolled back') rollback()
        return result
      }, options)
      if (fate !== 'fine') throw lost()
      return result
    },
  }
  const revisions = createRevisions(troubled)
  const administration = createAdministration(troubled, revisions, createAuditLog(troubled))
  const { facts } = await revisions.current()
  return {
    url,
    create: () => administration.apply([{ type: 'partner.created', partner: partner() }], facts, stamp),
    found: async () => (await administration.listPartners(undefined, 1000)).length,
    moved: async () => (await revisions.current()).facts !== facts,
    release: released.resolve,
    told: () => told,
  }
}

await t.test('a change that was made is said to be made', async (t) => {
  const { create, found, moved, told } = await open(t, 'committed', 'fine')
  t.equal(await create(), true)
  t.equal(await found(), 1)
  t.equal(await moved(), true)
  t.equal(told(), 1)
})

await t.test('a change that was not made is said not to be, and can be made', async (t) => {
  const { create, found, moved, told } = await open(t, 'rolled back', 'fine')
  await t.rejects(create(), { code: 'unreachable', message: /has nothing of the change: try again\.$/ })
  t.equal(await found(), 0)
  t.equal(await moved(), false)
  t.equal(told(), 0)
  t.equal(await create(), true)
  t.equal(await found(), 1)
})

await t.test('a change that is still under way is waited for', async (t) => {
  const { create, found, release } = await open(t, 'under way', 'fine')
  const created = create()
  await until(
    async () => (await server.admin`select 1 from pg_locks where not granted`).length > 0,
    'the look for the change to wait for it',
  )
  t.equal(await found(), 0)
  release()
  t.equal(await created, true)
  t.equal(await found(), 1)
})

await t.test('a server that comes back is asked then', async (t) => {
  const { create, found } = await open(t, 'committed', 'away', 'away', 'fine')
  t.equal(await create(), true)
  t.equal(await found(), 1)
})

await t.test('a server that stays away leaves it open, and the message says so', async (t) => {
  const { create, told } = await open(t, 'committed', 'away')
  await t.rejects(create(), {
    code: 'unreachable',
    message: /the change may have been made all the same\. Look before trying again\.$/,
  })
  t.equal(told(), 0)
})

await t.test('a connection that was lost before is no riddle', async (t) => {
  const { create, found } = await open(t, 'away')
  await t.rejects(create(), { code: 'unreachable', message: 'away' })
  t.equal(await found(), 0)
})

await t.test('a store that somebody keeps locked is not waited for without end', async (t) => {
  const { url, create, found, moved } = await open(t, 'fine')
  await intrude(url, (sql) =>
    sql.begin(async (transaction) => {
      await transaction`select from partner_api.revision for update`
      await t.rejects(create(), { code: 'unreachable', message: /locked for 5 s\. Nothing was changed\.$/ })
    }))
  t.equal(await found(), 0)
  t.equal(await moved(), false)
  t.equal(await create(), true)
})
