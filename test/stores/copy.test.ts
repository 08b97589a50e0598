/** `store copy`: what is in one store is in another one afterwards, whatever kinds they are. */
import t from 'tap'
import { documentOf, type Ended, runProgram } from '../support/cli-program.ts'
import { listenTo } from './copies/answers.ts'
import { fillStore } from './copies/full-store.ts'
import { openAt, openPlaces } from './copies/places.ts'

const places = await openPlaces()
t.teardown(() => places.close())

const copy = (from: string, to: string, ...more: string[]): Promise<Ended> =>
  runProgram(['store', 'copy', '--from', from, '--to', to, ...more])

const first = await places.vacant('sqlite')
const store = await openAt(first)
const world = await fillStore(store)
await store.close()

/** The tables of the first store, as the first copy has reported them. */
let tables: readonly { table: string; rows: number; checksum: string; same: boolean }[]

await t.test('a dry run says what would be copied, and makes nothing', async (t) => {
  const target = await places.vacant('sqlite')
  const tried = await copy(first, target, '--dry-run')
  t.match(tried, { code: 0, stderr: 'Nothing was written.\n' })
  t.match(tried.stdout, /^TABLE +ROWS +TO WRITE +TO REMOVE\n/)
  t.match(tried.stdout, /^profiles +1,271 +1,271 +0$/m)
  const { data } = documentOf(await copy(first, target, '--dry-run', '--json'))
  t.match(data, { copied: false, dry_run: true })
  for (const { table, rows, to_write, to_remove } of data.tables) {
    t.ok(rows > 0, `there are ${table} to copy`)
    t.strictSame([to_write, to_remove], [rows, 0], table)
  }
  t.match(await runProgram(['partners', 'list', '--store', target]), { code: 3 })
})

await t.test('a copy is reported table by table', async (t) => {
  const target = await places.vacant('sqlite')
  const made = await copy(first, target)
  t.match(made, { code: 0, stderr: /^The copy is complete and equal to its source\./ })
  const rows = made.stdout.trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/))
  t.strictSame(rows[0], ['TABLE', 'ROWS', 'CHECKSUM', 'SAME'])
  const again = documentOf(await copy(first, target, '--json'))
  tables = again.data.tables
  t.match(again.data, { copied: true, dry_run: false })
  t.strictSame(
    rows.slice(1),
    tables.map((
      { table, rows, checksum },
    ) => [table, rows.toLocaleString('en'), checksum.slice(0, 16), 'yes']),
    'the same again for what was copied before',
  )
  t.ok(tables.every(({ same, checksum }) => same && /^[0-9a-f]{64}$/.test(checksum)))
  t.equal(new Set(tables.map(({ checksum }) => checksum)).size, tables.length)
})

for (const kind of places.kinds) {
  for (const next of places.kinds) {
    await t.test(`sqlite to ${kind} to ${next}`, async (t) => {
      const [second, third] = [await places.vacant(kind), await places.vacant(next)]
      t.strictSame(documentOf(await copy(first, second, '--json')).data.tables, tables)
      t.strictSame(documentOf(await copy(second, third, '--json')).data.tables, tables)

      const audits = await Promise.all(
        [first, second, third].map((url) => runProgram(['audit', 'verify', '--store', url, '--json'])),
      )
      t.equal(documentOf(audits[0]!).data.valid, true)
      t.strictSame(audits.map(documentOf), Array(3).fill(documentOf(audits[0]!)))

      // On duplicates: to be asked is counted.
      const [here, there] = [await places.vacant('sqlite'), await places.vacant(next)]
      await copy(first, here)
      await copy(third, there)
      const stores = [await openAt(here), await openAt(there)] as const
      const [before, after] = [listenTo(stores[0], world), listenTo(stores[1], world)]
      const said = await before.everything()
      t.strictSame(await after.everything(), said)
      t.match(said['demo full: /partner/reports/summary?partner=demo'], /"signups":{"total":603,/)
      t.match(said['demo revoked: verify-key'], /^401 .*key_revoked/)

      const page = await before.page()
      const cursor = page.json.data.length === 7 ? page.json.page.next_cursor : undefined
      t.strictSame((await after.page(cursor)).text, (await before.page(cursor)).text, 'a cursor goes on')

      const [repeated, original] = [await after.repeat(), await before.repeat()]
      t.equal(repeated.status, 201)
      t.equal(repeated.headers.get('idempotent-replayed'), 'true')
      t.equal(repeated.text, original.text, 'what was sent before is answered as before')
      await Promise.all([before.close(), after.close()])
      for (const store of stores) await store.close()
    })
  }
}
