/** `store copy`: the copy equals its source, for all kinds of stores and after interruptions. */
import { existsSync } from 'node:fs'
import t from 'tap'
import { copyStore, planCopy } from '../../adapters/stores/copy/copy.ts'
import type { CopyTarget } from '../../adapters/stores/copy/ends.ts'
import { openSource } from '../../cli/store/command.ts'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { documentOf, runProgram } from '../support/cli-program.ts'
import { serve } from './copies/answers.ts'
import { fillStore, MANY_ROWS } from './copies/full-store.ts'
import {
  copy,
  copyUpTo,
  fileOf,
  type Kind,
  openAt,
  openPlaces,
  type Stop,
  withEnds,
  withStoreAt,
} from './copies/stores.ts'

const places = await openPlaces()
t.teardown(() => places.close())
const noServer = places.server === undefined && 'no server'

const first = await places.vacant('sqlite')
const world = await withStoreAt(first, fillStore)
const second = await places.vacant('sqlite')
const { tables } = await copy(first, second)

await t.test('the command prints every table of a plan and of a copy', async (t) => {
  const target = await places.vacant('sqlite')
  const command = ['store', 'copy', '--from', first, '--to', target]
  const planned = await runProgram([...command, '--dry-run'])
  t.match(planned, { code: 0, stderr: 'Nothing was written.\n' })
  t.match(planned.stdout, /^TABLE +ROWS +TO WRITE +TO REMOVE\n/)
  t.match(planned.stdout, /^profiles +591 +591 +0$/m)
  t.notOk(existsSync(fileOf(target)))

  const copied = await runProgram(command)
  t.match(copied, { code: 0, stderr: /^The copy is complete and equal to its source\./ })
  const [heading, ...rows] = copied.stdout.trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/))
  t.strictSame(heading, ['TABLE', 'ROWS', 'CHECKSUM', 'SAME'])
  t.strictSame(
    rows,
    tables.map((
      { table, rows, checksum },
    ) => [table, rows.toLocaleString('en'), checksum.slice(0, 16), 'yes']),
  )

  const { data } = documentOf(await runProgram([...command, '--json']))
  t.strictSame(data, {
    tables: tables.map(({ table, rows, checksum }) => ({ table, rows, checksum, same: true })),
    copied: true,
    dry_run: false,
  }, 'a repeated copy is reported as the first one')
  const plan = documentOf(await runProgram([...command, '--json', '--dry-run'])).data
  t.strictSame(plan, {
    tables: tables.map(({ table, rows }) => ({ table, rows, to_write: 0, to_remove: 0 })),
    copied: false,
    dry_run: true,
  })
})

await t.test('the plan for an empty target lists all rows, with a checksum for each table', async (t) => {
  const source = await openSource(first)
  const plan = await planCopy(source, undefined, { now: Date.now() })
  await source.close()
  for (const { table, rows, toWrite, toRemove } of plan) {
    t.ok(rows > 0, `there are ${table} to copy`)
    t.strictSame([toWrite, toRemove], [rows, 0], table)
  }
  t.equal(new Set(plan.map(({ checksum }) => checksum)).size, plan.length)
  t.ok(plan.every(({ checksum }) => /^[0-9a-f]{64}$/.test(checksum)))
})

await t.test('copies between all kinds of stores give equal responses', async (t) => {
  // Requests change counts: the first store is not served.
  const urls = [second]
  // Every kind is copied into every kind.
  const targets: readonly Kind[] = noServer ? ['sqlite'] : ['sqlite', 'postgres', 'postgres', 'sqlite']
  for (const kind of targets) {
    const target = await places.vacant(kind)
    t.strictSame((await copy(urls.at(-1)!, target)).tables, tables, kind)
    urls.push(target)
  }

  const services = []
  for (const url of urls) {
    const store = await openAt(url)
    services.push({ url, store, service: serve(store, world) })
  }
  const [original, ...copies] = services
  const responses = await original!.service.everything()
  t.match(responses['demo full: /partner/reports/summary?partner=demo'], /"signups":{"total":3,/)
  t.match(responses['demo revoked: verify-key'], /^401 .*key_revoked/)
  const page = await original!.service.page()
  const cursor: string = page.json.page.next_cursor
  t.equal(page.json.data.length, 7)
  const nextPage = await original!.service.page(cursor)
  const repeated = await original!.service.repeat()
  t.equal(repeated.headers.get('idempotent-replayed'), 'true')
  const audit = await verifyAuditLog(original!.store)
  t.match(audit, { brokenAt: undefined, differences: [] })

  for (const { url, store, service } of copies) {
    const kind = url.split(':')[0]
    t.strictSame(await service.everything(), responses, `the responses of ${kind}`)
    t.equal((await service.page(cursor)).text, nextPage.text, `a cursor is valid in ${kind}`)
    const replayed = await service.repeat()
    t.strictSame([replayed.status, replayed.text], [201, repeated.text], `a signup is replayed by ${kind}`)
    t.equal(replayed.headers.get('idempotent-replayed'), 'true')
    t.strictSame(await verifyAuditLog(store), audit, `the audit log of ${kind}`)
  }
  for (const { store, service } of services) {
    await service.close()
    await store.close()
  }
})

const stops: readonly Stop[] = [
  ['copying', 'settings', 0],
  ['copying', 'profiles', 500],
  ['copying', 'request_counts', 500],
  ['comparing', 'settings', 0],
  ['comparing', 'audit', 0],
]

for (const kind of places.kinds) {
  await t.test(`a copy into ${kind} that is interrupted repeatedly is unusable until it is finished`, async (t) => {
    const target = await places.vacant(kind)
    for (const stop of stops) {
      await copyUpTo(first, target, stop)
      await t.rejects(openAt(target), { code: 'refused', message: /has not been finished/ }, stop.join(' '))
    }
    t.match(await copy(first, target), { tables, isFinished: true })
  })

  await t.test(`rows that ${kind} already has are not written again`, async (t) => {
    const target = await places.vacant(kind)
    await copyUpTo(first, target, ['copying', 'request_counts', 500])
    const written: Record<string, number> = {}
    const planned = await withEnds(first, target, async (source, target) => {
      const plan = await planCopy(source, target, { now: Date.now() })
      const write: CopyTarget['write'] = (table, rows, removedKeys) => {
        written[table] = (written[table] ?? 0) + rows.length
        return target.write(table, rows, removedKeys)
      }
      t.equal((await copyStore(source, { ...target, write }, { now: Date.now() })).isFinished, true)
      return plan.filter(({ toWrite }) => toWrite > 0)
    })
    const rows = Object.fromEntries(tables.map(({ table, rows }) => [table, rows]))
    t.ok(rows.request_counts! >= MANY_ROWS)
    const { request_counts, key_request_counts, problems, webhooks, webhook_deliveries, audit } = rows
    const later = { key_request_counts, problems, webhooks, webhook_deliveries, audit }
    t.strictSame(written, { request_counts: request_counts! - 500, ...later })
    t.strictSame(Object.fromEntries(planned.map(({ table, toWrite }) => [table, toWrite])), written)
  })

  await t.test(`a store in ${kind} that was open while empty refuses to serve the copy`, async (t) => {
    const target = await places.vacant(kind)
    const open = await openAt(target)
    await copyUpTo(first, target, ['copying', 'profiles', 500])
    await t.rejects(async () => await open.check(), { code: 'refused', message: /has not been finished/ })
    t.match(await copy(first, target), { isFinished: true })
    await t.rejects(async () => await open.check(), { code: 'refused', message: /Start again/ })
    await open.close()
    await withStoreAt(target, async (store) => t.equal((await store.findPartner('demo'))?.slug, 'demo'))
  })
}

await t.test('a copy whose server dies can be finished after it restarts', { skip: noServer }, async (t) => {
  const [target, server] = [await places.vacant('postgres'), places.server!]
  let isDown: Promise<void> | undefined
  const dying = withEnds(first, target, (source, target) =>
    copyStore(source, target, {
      now: Date.now(),
      progress(_doing, table, rows) {
        if (table === 'profiles' && rows >= 500) isDown ??= server.kill()
      },
    }))
  await t.rejects(dying, { code: 'unreachable' })
  await isDown
  await server.restart()
  t.match(await copy(first, target), { tables, isFinished: true })
})
