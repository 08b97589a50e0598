/**
 * Reads from a standby that is in order, behind, stuck, cut off, in conflict with what it replays and promoted:
 * `node test/integration/trials/standby.ts [READS, 1000000]`. No read may lack a change that its process had confirmed
 * before, and none may fail while the primary is there.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { createOracle } from '../../postgres/freshness.ts'
import { startGate } from '../../postgres/network.ts'
import { startServer } from '../../postgres/server.ts'
import { startStandby } from '../../postgres/standby.ts'
import type { SharedStore } from '../../contract/store/suites.ts'

const total = Number(process.argv[2] ?? 1_000_000)
const server = await startServer()
const standby = await startStandby(server)
const gate = await startGate(standby.port)
const url = await server.createDatabase()
const writer = await openPostgresStore(url)
await standby.caughtUp()
const hosts = `127.0.0.1:${server.port},127.0.0.1:${gate.port}`
const reader = await openPostgresStore(`${url.replace(/@[^/]+/, `@${hosts}`)}?reads=standby`) as SharedStore
const oracle = await createOracle(writer, reader)
const sql = postgres(url, { max: 1, onnotice: () => {} })

async function set(name: string, value: string): Promise<void> {
  await standby.admin.unsafe(`alter system set ${name} = '${value}'`)
  await standby.admin`select pg_reload_conf()`
}

let stale = 0
let failed = 0
let reads = 0

/** @param fault Runs during the reads. */
async function trial(
  name: string,
  share: number,
  changesEveryMs: number | undefined,
  fault: () => Promise<unknown> = () => Promise.resolve(),
  kinds?: readonly ('facts' | 'content')[],
): Promise<void> {
  const stop = changesEveryMs === undefined
    ? () => Promise.resolve(0)
    : oracle.changeEvery(changesEveryMs, kinds)
  const before = { ...reader.standbyReads!() }
  let isOver = false
  const wanted = total * share
  const startedAt = performance.now()
  const [outcome] = await Promise.all([
    oracle.readWhile((count) => count < wanted || !isOver),
    fault().then(() => isOver = true),
  ])
  const seconds = (performance.now() - startedAt) / 1000
  const changes = await stop()
  const after = reader.standbyReads!()
  const share100 = (result: string) =>
    `${(100 * (after[result]! - before[result]!) / outcome.reads).toFixed(1)} % ${result}`
  console.log(
    `${name}: ${outcome.reads} reads in ${
      seconds.toFixed(1)
    } s, ${changes} changes; stale ${outcome.stale}, failed ` +
      `${outcome.failed}, longest ${Math.round(outcome.longestMs)} ms; ${
        Object.keys(after).map(share100).join(', ')
      }`,
  )
  stale += outcome.stale
  failed += outcome.failed
  reads += outcome.reads
}

await trial('at rest', 0.1, undefined)
await trial('ten changes a second', 0.1, 100)
await trial('changes without a pause', 0.15, 1)
await set('recovery_min_apply_delay', '200ms')
await sleep(300)
await trial('200 ms behind, ten changes of facts a second', 0.1, 100, undefined, ['facts'])
await trial('200 ms behind, ten changes of content a second', 0.1, 100, undefined, ['content'])
await set('recovery_min_apply_delay', '3s')
await trial('3 s behind', 0.05, 500)
await set('recovery_min_apply_delay', '0')
await trial('replay paused and resumed', 0.1, 20, async () => {
  for (let time = 0; time < 20; time++) {
    await standby.admin`select pg_wal_replay_pause()`
    await sleep(100)
    await standby.admin`select pg_wal_replay_resume()`
    await sleep(100)
  }
})
await trial('cut off and back', 0.05, 50, async () => {
  for (let time = 0; time < 3; time++) {
    gate.cut()
    await sleep(1_500)
    await gate.restore()
    await sleep(1_500)
  }
})
await trial('refused and back', 0.05, 50, async () => {
  for (let time = 0; time < 3; time++) {
    await gate.reset()
    await sleep(1_000)
    await gate.restore()
    await sleep(1_500)
  }
})
await set('max_standby_streaming_delay', '0')
await trial('conflicts with what it replays', 0.1, 5, async () => {
  // It takes locks that reads have, and removes rows that they see.
  for (let time = 0; time < 100; time++) {
    for (const table of ['profile', 'listing']) await sql.unsafe(`vacuum full partner_api.${table}`)
    await sleep(20)
  }
  const [row] = await standby.admin`
    select sum(confl_snapshot + confl_lock + confl_bufferpin)::integer as conflicts from pg_stat_database_conflicts`
  console.log(`${row?.['conflicts']} reads were canceled by what was replayed`)
})
await trial('the standby hangs', 0.05, 50, async () => {
  await sleep(200)
  await standby.pause()
  await sleep(2_000)
  await standby.resume()
  await sleep(2_000)
})
await trial('promoted beside the primary', 0.05, 50, async () => {
  await sleep(500)
  await standby.promote()
  await sleep(2_000)
})

console.log(`${reads} reads, ${stale} stale, ${failed} failed`)
await oracle.close()
await sql.end()
await reader.close()
await writer.close()
await gate.close()
await standby.close()
await server.close()
process.exit(stale + failed > 0 ? 1 : 0)
