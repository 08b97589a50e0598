/**
 * Webhooks: `node test/integration/trials/webhooks.ts KILLS sqlite|postgres [kills]`, with `kills` only the first part.
 *
 * 1. Kills the server or the receiver with SIGKILL, in turn, during signups. The event of every acknowledged signup must be
 *    delivered; those that are delivered twice are counted.
 * 2. Deliveries a second from one process to a receiver on this machine.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { importWebhookKey, startWebhooks } from '../../../adapters/webhooks/deliverer.ts'
import type { Store } from '../../../core/ports/store.ts'
import { createEvent } from '../../../core/webhooks/events.ts'
import { freePort } from '../../postgres/free-port.ts'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { newFile } from '../../support/cli-program.ts'
import { createPartner } from '../../support/partner.ts'
import { signUp } from './load.ts'
import { addWebhook, check, countAt, NO_LIMITS, openStore, startReplica, WEBHOOK_KEY } from './setup.ts'

/** A receiver of its own process: prints the signup of each delivery before it answers. */
async function receive(port: number): Promise<void> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    process.stdout.write(`${JSON.parse(body).data.id}\n`, () => response.writeHead(204).end())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  process.stdout.write('ready\n')
}

async function main(): Promise<void> {
  const kills = countAt(0, 200)
  const database = process.argv[3] === 'postgres' ? await startServer() : undefined
  const createUrl = async () => database ? await database.createDatabase() : `sqlite:${newFile()}`
  await killRepeatedly(kills, await createUrl())
  if (process.argv[4] !== 'kills') await measureDeliveries(await createUrl())
  await database?.close()
  process.exit()
}

async function killRepeatedly(kills: number, url: string): Promise<void> {
  const store = await openStore(url)
  const { text: key } = await (await createPartner(store)).issue()
  const port = await freePort()
  const webhook = await addWebhook(store, `http://127.0.0.1:${port}/`, 0)
  const args = [...NO_LIMITS, '--allow-private-webhooks']
  const serve = () => startReplica('only', url, args, { env: { PARTNER_API_WEBHOOK_KEY: WEBHOOK_KEY } })
  const acknowledged = new Set<string>()
  const deliveries = new Map<string, number>()
  let number = 0
  let replica = await serve()
  let receiver = await startReceiving(port, deliveries)
  let isOver = false
  const senders = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const { status, body } = await signUp(replica.client, key, number++)
      if (status === 201) acknowledged.add(JSON.parse(body).data.id)
      await sleep(10)
    }
  })
  for (let kill = 0; kill < kills; kill++) {
    await sleep(100 + Math.random() * 900)
    if (kill % 2 === 0) {
      await replica.kill()
      replica = await serve()
    } else {
      receiver.kill('SIGKILL')
      await once(receiver, 'close')
      receiver = await startReceiving(port, deliveries)
    }
  }
  isOver = true
  await Promise.all(senders)
  // Retries follow the schedule: the trial does not wait for the later ones.
  const left = () => [...acknowledged].filter((id) => !deliveries.has(id))
  const deadline = performance.now() + 120_000
  while (left().length > 0 && performance.now() < deadline) {
    await makeDue(store, webhook)
    await sleep(5_000)
  }
  await replica.stop()
  receiver.kill()
  await store.close()
  const lost = left().length
  const doubled = [...deliveries.values()].filter((count) => count > 1).length
  console.log(
    `${kills} kills, ${acknowledged.size} acknowledged, ${deliveries.size} delivered, ${doubled} more than once`,
  )
  check(`the event of each acknowledged signup is delivered (${lost} lost)`, lost === 0)
  check('something was acknowledged', acknowledged.size > 0)
}

/** Repeats pending deliveries now, instead of by the schedule. */
async function makeDue(store: Store, webhook: string): Promise<void> {
  const pending = await store.webhooks!.listDeliveries(webhook, 'pending', undefined, 500)
  await store.webhooks!.settleDeliveries(
    pending.map(({ id, webhook, lastStatus, lastError }) => (
      { id, webhook, state: 'pending', retryMs: 0, lastStatus, lastError } as const
    )),
  )
}

/** Starts a receiver, and counts its deliveries by signup. */
async function startReceiving(port: number, deliveries: Map<string, number>): Promise<ChildProcess> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'receive', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface(child.stdout!)
  // Before the wait: the first deliveries may arrive together with the line that is waited for.
  lines.on('line', (id) => id === 'ready' || deliveries.set(id, (deliveries.get(id) ?? 0) + 1))
  await once(lines, 'line')
  return child
}

async function enqueue(store: Store, webhook: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const events = Array.from({ length: 500 }, (_, index) => {
      const id = `msg_${String(from + index).padStart(20, '0')}`
      return createEvent({ id, type: 'webhook.test', partner: undefined, createdAt: Date.now() }, { id })
    })
    await store.webhooks!.enqueue(events, webhook)
  }
}

async function measureDeliveries(url: string): Promise<void> {
  const count = 20_000
  const store = await openStore(url)
  const port = await freePort()
  const deliveries = new Map<string, number>()
  const receiver = await startReceiving(port, deliveries)
  await enqueue(store, await addWebhook(store, `http://127.0.0.1:${port}/`, 0), count)
  const startedAt = performance.now()
  const webhooks = startWebhooks(store, { key: await importWebhookKey(WEBHOOK_KEY), allowPrivate: true })
  await until(() => webhooks.outcomes.delivered === count, 'all deliveries', 600_000)
  const rate = count / (performance.now() - startedAt) * 1_000
  await webhooks.close()
  await store.close()
  receiver.kill()
  check(`2,000 deliveries a second (${Math.round(rate).toLocaleString('en')})`, rate >= 2_000)
}

if (process.argv[2] === 'receive') await receive(Number(process.argv[3]))
else await main()
