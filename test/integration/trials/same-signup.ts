/**
 * Sends one signup 200 times at once to four replicas, and kills Postgres in the middle:
 * `node test/integration/trials/same-signup.ts [TIMES, 10] [REQUESTS, 200]`. The signup must be stored exactly once, and
 * an acknowledged one must not be lost.
 */
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import type { Store } from '../../../core/ports/store.ts'
import { type PostgresServer, startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import type { Client, Reply } from './client.ts'
import { startReplicas } from './replicas.ts'
import { bodyOf } from './signing.ts'
import { createTenant, NO_LIMITS } from './tenant.ts'
import { check, checkFailures, countAt, endWithin } from './verdict.ts'

const times = countAt(0, 10)
const requests = countAt(1, 200)
const replicaCount = 4
/** The acknowledged ids of each signup. */
const acknowledgedIds = new Map<number, string[]>()
const statuses = new Map<number, number>()

endWithin(60 + times * 30)
const server = await startServer({ durable: true })
try {
  const url = await server.createDatabase()
  const store = await openPostgresStore(url)
  const replicas = await startReplicas(replicaCount, url, NO_LIMITS)
  try {
    const clients = replicas.map(({ client }) => client)
    const { text: key } = await (await createTenant(store)).issue()
    let number = 0
    for (let time = 0; time < times; time++) await sendAtOnce(clients, key, number++)
    console.log(`${times} × ${requests} equal signups at ${replicaCount} replicas:`)
    await checkSignups(store, times)
    for (let time = 0; time < times; time++) await sendAndKill(server, clients, key, number++)
    console.log(`The same, with PostgreSQL killed meanwhile:`)
    await checkSignups(store, 2 * times)
    checkFailures(clients)
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()))
    await store.close()
  }
} finally {
  await server.close()
}

function send(clients: readonly Client[], key: string, number: number): Promise<Reply[]> {
  return Promise.all(
    Array.from({ length: requests }, async (_, index) => {
      const request = { key, body: bodyOf(number), idempotencyKey: `trial-${number}` }
      const reply = await clients[index % clients.length]!.send('/partner/signups', request)
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1)
      if (reply.status === 201) {
        const { id } = JSON.parse(reply.body).data
        acknowledgedIds.set(number, [...acknowledgedIds.get(number) ?? [], id])
      }
      return reply
    }),
  )
}

async function sendAtOnce(clients: readonly Client[], key: string, number: number): Promise<void> {
  const replies = await send(clients, key, number)
  // 409 means that the first attempt is in progress.
  const others = replies.filter(({ status }) => status !== 201 && status !== 409).length
  if (others > 0) check(`every request gets 201 or 409 (${others} do not)`, false)
}

async function sendAndKill(
  server: PostgresServer,
  clients: readonly Client[],
  key: string,
  number: number,
): Promise<void> {
  const sent = send(clients, key, number)
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
  await server.kill()
  await sent
  await server.restart()
  await until(
    async () => (await send(clients, key, number)).some(({ status }) => status === 201),
    'the replicas to be back',
    30_000,
  )
}

async function checkSignups(store: Store, expected: number): Promise<void> {
  const kept = await store.listSignups(undefined, undefined, 10_000)
  const ids = new Set(kept.map(({ id }) => id))
  const answers = [...acknowledgedIds.values()]
  const lost = answers.flat().filter((id) => !ids.has(id)).length
  const count = [...statuses].map(([status, times]) => `${times} × ${status || 'no answer'}`).join(', ')
  console.log(`  answers: ${count}`)
  statuses.clear()
  check(`each signup is stored once (${kept.length} of ${expected})`, kept.length === expected)
  check('each signup is acknowledged with one id', answers.every((one) => new Set(one).size === 1))
  check(`no acknowledged signup is lost (${lost})`, lost === 0)
}
