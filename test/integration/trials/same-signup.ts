/**
 * Sends one signup 200 times at once to four replicas, and kills Postgres in the middle:
 * `node test/integration/trials/same-signup.ts [TIMES, 10] [REQUESTS, 200]`. The signup must be stored exactly once, and
 * an acknowledged one must not be lost.
 */
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { signUp } from './load.ts'
import { check, checkFailures, countAt, endWithin, type Reply, startScene } from './setup.ts'

const times = countAt(0, 10)
const requests = countAt(1, 200)
/** The acknowledged ids of each signup. */
const acknowledgedIds = new Map<number, string[]>()

endWithin(60 + times * 30)
const server = await startServer({ durable: true })
const { store, clients, key, close } = await startScene(await server.createDatabase())
const replies: Reply[] = []
for (let number = 0; number < times; number++) replies.push(...await send(number))
console.log(`${times} × ${requests} equal signups at ${clients.length} replicas:`)
// 409 means that the first attempt is in progress.
const others = replies.filter(({ status }) => status !== 201 && status !== 409).length
check(`every request gets 201 or 409 (${others} do not)`, others === 0)
await checkStore(times)
for (let number = times; number < 2 * times; number++) await sendAndKill(number)
console.log(`The same, with PostgreSQL killed meanwhile:`)
await checkStore(2 * times)
checkFailures(clients)
await close()
await server.close()
process.exit()

async function send(number: number): Promise<Reply[]> {
  const replies = await Promise.all(
    Array.from({ length: requests }, (_, index) => signUp(clients[index % clients.length]!, key, number)),
  )
  const ids = replies.filter(({ status }) => status === 201).map(({ body }) => JSON.parse(body).data.id)
  acknowledgedIds.set(number, [...acknowledgedIds.get(number) ?? [], ...ids])
  return replies
}

async function sendAndKill(number: number): Promise<void> {
  const sent = send(number)
  await sleep(Math.random() * 60)
  await server.kill()
  await sent
  await server.restart()
  await until(
    async () => (await send(number)).some(({ status }) => status === 201),
    'the replicas to be back',
    30_000,
  )
}

async function checkStore(expected: number): Promise<void> {
  const kept = await store.listSignups(undefined, undefined, 10_000)
  const ids = new Set(kept.map(({ id }) => id))
  const answers = [...acknowledgedIds.values()]
  const lost = answers.flat().filter((id) => !ids.has(id)).length
  check(`each signup is stored once (${kept.length} of ${expected})`, kept.length === expected)
  check('each signup is acknowledged with one id', answers.every((one) => new Set(one).size === 1))
  check(`no acknowledged signup is lost (${lost})`, lost === 0)
}
