/**
 * Revokes keys while they are used continuously on four replicas, and counts accepted requests that were sent after the
 * receipt: `node test/integration/trials/revoke-everywhere.ts [TRIALS, 200] [OF THEM BY COMMAND, 10]`. Once
 * with notifications, once through a pooler, where replicas poll, and once on one SQLite file.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { awaitReceipt } from '../../../core/replicas.ts'
import { median, quantile } from '../../bench/report.ts'
import { startPooler } from '../../postgres/pooler.ts'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { newFile, programOn } from '../../support/cli-program.ts'
import { startLoad } from './load.ts'
import { check, countAt, endWithin, ms, READ, startScene } from './setup.ts'

const trials = countAt(0, 200)
const byCommand = Math.min(countAt(1, 10), trials)
const maxStalenessMs = 1000
/** How long a key is used after its receipt: much longer than a response takes. */
const afterwardsMs = 150

endWithin(180 + trials * 10)
const server = await startServer()
const pooler = await startPooler(server)
console.log(`${trials} revocations at four replicas that are notified:`)
const notified = await revokeAll(await server.createDatabase())
check('half of the receipts come within 50 ms', median(notified) <= 50)
console.log(`${trials} revocations at four replicas behind a pooler, without notifications:`)
await revokeAll(`${pooler.url(await server.createDatabase())}?pooler=transaction`)
console.log(`${trials} revocations at four replicas on one SQLite file:`)
await revokeAll(`sqlite:${newFile()}`)
await pooler.close()
await server.close()
process.exit()

/** @returns How long each receipt took. */
async function revokeAll(url: string): Promise<readonly number[]> {
  const scene = await startScene(url)
  const everySoOften = Math.ceil(trials / byCommand)
  const found: Revocation[] = []
  for (let trial = 0; trial < trials; trial++) {
    found.push(await watchRevocation(scene, url, trial % everySoOften === 0))
  }
  await scene.close()
  const receipts = found.map(({ receiptMs }) => receiptMs)
  const sum = (of: (one: Revocation) => number): number => found.reduce((total, one) => total + of(one), 0)
  const late = sum((one) => one.acceptedAfterwards)
  const wrong = sum((one) => one.unanswered)
  console.log(`  receipts: ${spread(receipts)}`)
  console.log(
    `  the last accepted request was sent after the change: ${
      spread(found.map((one) => one.lastAcceptedMs))
    }`,
  )
  console.log(`  ${sum(({ asked }) => asked).toLocaleString('en')} requests`)
  check(`no request sent after a receipt is accepted (${late})`, late === 0)
  check(`every receipt comes within ${maxStalenessMs} ms`, Math.max(...receipts) <= maxStalenessMs)
  check(`every request gets 200 or 401 (${wrong} do not)`, wrong === 0)
  return receipts
}

type Revocation = Awaited<ReturnType<typeof watchRevocation>>

/** Revokes a new key while it is used on all replicas. Milliseconds count from when the change was known to be committed. */
async function watchRevocation(
  { clients, keys, issue, store }: Awaited<ReturnType<typeof startScene>>,
  url: string,
  isByCommand: boolean,
) {
  const { key: { id }, text: key } = await issue()
  const loads = clients.map((client) => startLoad(() => client.send(READ, { key }), 2, 2))
  await until(
    () => loads.every(({ replies }) => replies.filter(({ status }) => status === 200).length >= 5),
    'all replicas to know the key',
  )
  if (!isByCommand) await keys.revoke(id)
  const revokedAt = performance.now()
  const receipt = isByCommand
    ? (await programOn(url).json('keys', 'revoke', id, '--wait')).receipt
    : await awaitReceipt(store)
  const receivedAt = performance.now()
  const changedAt = isByCommand ? receivedAt - receipt!.ms : revokedAt
  await sleep(afterwardsMs)
  const replies = (await Promise.all(loads.map((load) => load.stop()))).flat()
  if (receipt?.replicas.filter(({ applied }) => applied).length !== clients.length) {
    throw new Error(`A receipt did not include all replicas: ${JSON.stringify(receipt)}`)
  }
  const accepted = replies.filter(({ status }) => status === 200)
  return {
    receiptMs: receivedAt - changedAt,
    /** When the last accepted request was sent. */
    lastAcceptedMs: Math.max(...accepted.map(({ askedAt }) => askedAt)) - changedAt,
    asked: replies.length,
    /** The number of accepted requests that were sent after the receipt. */
    acceptedAfterwards: accepted.filter(({ askedAt }) => askedAt > receivedAt).length,
    /** The number of responses other than 200 and 401. */
    unanswered: replies.filter(({ status }) => status !== 200 && status !== 401).length,
  }
}

function spread(values: readonly number[]): string {
  return `p50 ${ms(median(values))}, p99 ${ms(quantile(values, 0.99))}, last ${ms(Math.max(...values))}`
}
