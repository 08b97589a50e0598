/** `store copy` that is broken off, at any moment and any number of times. */
import t from 'tap'
import { type CopyReport, copyStore } from '../../adapters/stores/copy/copy.ts'
import type { CopyTarget } from '../../adapters/stores/copy/source-and-target.ts'
import { openSource, openTarget } from '../../cli/commands/store.ts'
import {
  documentOf,
  ending,
  runProgram,
  startProgram,
  startServing,
  stopServing,
} from '../support/cli-program.ts'
import { copy, copyUpTo, type Stop } from './copies/copying.ts'
import { fillStore } from './copies/full-store.ts'
import { openAt, openPlaces } from './copies/places.ts'

const places = await openPlaces()
t.teardown(() => places.close())

const source = await places.vacant('sqlite')
const filled = await openAt(source)
const world = await fillStore(filled)
await filled.close()
const { data: { tables } } = documentOf(await copy(source, await places.vacant('sqlite'), '--json'))

const stops: readonly Stop[] = [
  ['copying', 'settings', 0],
  ['copying', 'profiles', 600],
  ['copying', 'signups', 500],
  ['comparing', 'settings', 0],
  ['comparing', 'audit', 0],
]

/** What a copy is broken off with in this process. */
const reached = new Error('far enough')

for (const kind of places.kinds) {
  for (const stop of stops) {
    await t.test(`killed while ${stop.join(' ')} to ${kind}, it goes on`, async (t) => {
      const target = await places.vacant(kind)
      const copying = await copyUpTo(source, target, stop)
      t.match(copying.line, `${stop[0]} ${stop[1]}`)
      await copying.kill()
      t.match(await runProgram(['partners', 'list', '--store', target]), {
        code: 1,
        stderr: /has not been finished/,
      })
      t.match(documentOf(await copy(source, target, '--json')), { data: { tables, copied: true } })
    })
  }

  await t.test(`killed at any moment, and again and again, it ends the same in ${kind}`, async (t) => {
    const target = await places.vacant(kind)
    let kills = 0
    for (let delay = 120; delay < 1_500; delay += 150) {
      const started = startProgram(['store', 'copy', '--from', source, '--to', target, '--json'])
      const timer = setTimeout(() => started.kill('SIGKILL'), delay)
      const ended = await ending(started)
      clearTimeout(timer)
      if (ended.signal === null) break
      kills++
    }
    t.ok(kills > 0, `${kills} kills`)
    t.match(documentOf(await copy(source, target, '--json')), { data: { tables, copied: true } })
  })

  await t.test(`what is in ${kind} already is not written again`, async (t) => {
    const target = await places.vacant(kind)
    const first = await copyHere(source, target, (_doing, table, rows) => {
      if (table === 'signups' && rows >= 500) throw reached
    })
    t.equal(first.error, reached)
    const planned = documentOf(await copy(source, target, '--dry-run', '--json')).data.tables
    const second = await copyHere(source, target)
    t.equal(second.report?.isFinished, true)
    const rows = Object.fromEntries(
      tables.map(({ table, rows }: { table: string; rows: number }) => [table, rows]),
    )
    const left = {
      signups: rows.signups - 500,
      idempotency_keys: rows.idempotency_keys,
      signup_counts: rows.signup_counts,
      request_counts: rows.request_counts,
      audit: rows.audit,
    }
    t.equal(first.put.signups, 500)
    t.strictSame(second.put, left)
    t.strictSame(
      planned.filter(({ to_write }: { to_write: number }) => to_write > 0)
        .map(({ table, to_write }: { table: string; to_write: number }) => [table, to_write]),
      Object.entries(left),
      'as the dry run said',
    )
  })

  await t.test(`who served ${kind} while it was empty does not serve what is copied into it`, async (t) => {
    const target = await places.vacant(kind)
    const served = await startServing(
      ['serve', '--port', '0', '--log', 'off', '--max-staleness', '0'],
      target,
    )
    const health = async (url: string) => (await fetch(`${url}/service/health`)).status
    t.equal(await health(served.url), 200)
    const copying = await copyUpTo(source, target, ['copying', 'signups', 500])
    t.equal(await health(served.url), 503)
    await copying.kill()
    t.match(await copy(source, target), { code: 0 })
    t.equal(await health(served.url), 503, 'it has the settings of another store')
    await stopServing(served)

    const anew = await startServing(['serve', '--port', '0', '--log', 'off'], target)
    t.equal(await health(anew.url), 200)
    const answer = await fetch(`${anew.url}/service/public/plans?partner=demo`, {
      headers: { 'x-service-partner-key': world.keys['demo full'].text },
    })
    t.equal(answer.status, 200)
    await stopServing(anew)
  })
}

await t.test(
  'a server that dies under the copy',
  { skip: places.server === undefined && 'no server' },
  async (t) => {
    const target = await places.vacant('postgres')
    const server = places.server!
    let isDown: Promise<void> | undefined
    const { error } = await copyHere(source, target, (_doing, table, rows) => {
      if (table === 'profiles' && rows >= 600) isDown ??= server.kill()
    })
    t.match(error, { code: 'unreachable' })
    await isDown
    t.match(await copy(source, target), { code: 3 })
    await server.restart()
    t.match(documentOf(await copy(source, target, '--json')), { data: { tables, copied: true } })
  },
)

/** Copies in this process, and counts the rows that are put. @param watch As `progress`; what it throws ends the copy. */
async function copyHere(
  from: string,
  to: string,
  watch: (doing: string, table: string, rows: number) => void = () => undefined,
): Promise<{ report: CopyReport | undefined; error: unknown; put: Readonly<Record<string, number>> }> {
  const [archive, target] = [await openSource(from), await openTarget(to)]
  const put: Record<string, number> = {}
  const counted = Object.entries(target.tables).map(([name, table]) => {
    const write = (rows: readonly never[], surplus: readonly never[]) => {
      put[name] = (put[name] ?? 0) + rows.length
      return table.write(rows, surplus)
    }
    return [name, { read: table.read, write }]
  })
  const tables = Object.fromEntries(counted) as CopyTarget['tables']
  try {
    const report = await copyStore(archive, { ...target, tables }, { now: Date.now(), progress: watch })
    return { report, error: undefined, put }
  } catch (error) {
    return { report: undefined, error, put }
  } finally {
    await target.close()
    await archive.close()
  }
}
