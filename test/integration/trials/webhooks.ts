/**
 * Webhooks: `node test/integration/trials/webhooks.ts KILLS sqlite|postgres [kills]`, with `kills` only the first part.
 *
 * 1. Kills the server or the receiver with SIGKILL, in turn, during signups. The event of every acknowledged signup must be
 *    delivered; those that are delivered twice are counted.
 * 2. Latency of signups without and with 1,000 events for a receiver that does not respond, alternating.
 * 3. Deliveries a second from one process to a receiver on this machine.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { importWebhookKey, startWebhooks } from '../../../adapters/webhooks/deliverer.ts'
import type { Store } from '../../../core/ports/store.ts'
import { createEvent } from '../../../core/webhooks/events.ts'
import { freePort } from '../../postgres/free-port.ts'
import { startServer } from '../../postgres/server.ts'
import { until } from '../../postgres/until.ts'
import { newFile, programOn, type Served, startServing, stopServing } from '../../support/cli-program.ts'
import { startReceiver } from '../../support/webhook-receiver.ts'
import { check, countAt } from './verdict.ts'
import { addWebhook, keyText } from './webhook.ts'

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
  const openUrl = async () => database ? await database.createDatabase() : `sqlite:${newFile()}`
  if (database) process.env['PGPASSWORD'] = database.password
  await killRepeatedly(kills, await openUrl())
  if (process.argv[4] !== 'kills') {
    await measureSignups(await openUrl())
    await measureDeliveries(await openUrl())
  }
  await database?.close()
}

const webhookId = `whk_${'0'.repeat(20)}`
const env = {
  PARTNER_API_WEBHOOK_KEY: keyText,
  ...process.env['PGPASSWORD'] && { PGPASSWORD: process.env['PGPASSWORD'] },
}
const serveArguments = [
  ...['serve', '--port', '0', '--limit', 'key=0', '--limit', 'signup=0', '--allow-private-webhooks'],
]

/** A store with the partner acme. @returns Its key. */
async function prepare(url: string): Promise<string> {
  const { run } = programOn(url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'signup')
  return (await run('keys', 'issue', 'acme', '--name', 'trial', '--quiet')).stdout.trim()
}

async function openStore(url: string): Promise<Store> {
  return url.startsWith('sqlite:') ? await openSqliteStore(url.slice(7)) : await openPostgresStore(url)
}

/** @returns The id of the signup; `undefined` unless it was acknowledged. */
async function sign(base: string, key: string, number: number): Promise<string | undefined> {
  try {
    const response = await fetch(`${base}/service/partner/signups`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-partner-key': key },
      body: JSON.stringify({ partner: 'acme', email: `someone${number}@mail.example`, name: 'Someone' }),
    })
    return response.status === 201 ? (await response.json()).data.id : undefined
  } catch {
    return undefined
  }
}

async function killRepeatedly(kills: number, url: string): Promise<void> {
  const key = await prepare(url)
  const port = await freePort()
  const store = await openStore(url)
  await addWebhook(store, `http://127.0.0.1:${port}/`, webhookId)
  const acknowledged = new Set<string>()
  const deliveries = new Map<string, number>()
  let number = 0
  let served: Served | undefined = await startServing(serveArguments, url, { env })
  let receiver: ChildProcess | undefined = await startReceiving(port, deliveries)
  let isOver = false
  const senders = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const id = served && await sign(served.url, key, number++)
      if (id !== undefined) acknowledged.add(id)
      await sleep(10)
    }
  })
  for (let kill = 0; kill < kills; kill++) {
    await sleep(100 + Math.random() * 900)
    const target = kill % 2 === 0 ? served!.child : receiver!
    const closed = once(target, 'close')
    target.kill('SIGKILL')
    await closed
    if (kill % 2 === 0) served = await startServing(serveArguments, url, { env })
    else receiver = await startReceiving(port, deliveries)
  }
  isOver = true
  await Promise.all(senders)
  // Retries follow the schedule: the trial does not wait for the later ones.
  const left = () => [...acknowledged].filter((id) => !deliveries.has(id))
  const deadline = performance.now() + 120_000
  while (left().length > 0 && performance.now() < deadline) {
    const pending = await store.webhooks!.countPending(webhookId)
    if (pending > 0) await makeDue(store)
    await sleep(5_000)
  }
  await stopServing(served!)
  receiver!.kill()
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
async function makeDue(store: Store): Promise<void> {
  const pending = await store.webhooks!.listDeliveries(webhookId, 'pending', undefined, 500)
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

/** Both states come as early and as late as the other. */
const rounds = [
  ...['disabled', 'active'],
  ...['active', 'disabled', 'disabled', 'active', 'active', 'disabled', 'disabled', 'active'],
] as readonly ('active' | 'disabled')[]
const warmUpRounds = 2

async function measureSignups(url: string): Promise<void> {
  const key = await prepare(url)
  const store = await openStore(url)
  const [live, dead] = [await startReceiver(), await startReceiver(() => {})]
  const deadId = `whk_${'1'.repeat(20)}`
  await addWebhook(store, live.url, webhookId)
  await addWebhook(store, dead.url, deadId)
  await enqueue(store, deadId, 1_000)
  const served = await startServing(serveArguments, url, { env })
  const times: Record<'active' | 'disabled', number[]> = { active: [], disabled: [] }
  for (const [round, state] of rounds.entries()) {
    const context = { actor: 'trial', at: Date.now() }
    const changed = await store.webhooks!.changeWebhook(
      ...[deadId, 'webhook.updated', context] as const,
      (webhook) => ({ ...webhook!, state, events: ['key.issued'] }),
    )
    if (changed?.state !== state) throw new Error('The webhook was not changed.')
    // Servers list webhooks every five seconds.
    await sleep(6_000)
    for (let number = 0; number < 1_000; number++) {
      const startedAt = performance.now()
      if (await sign(served.url, key, number) === undefined) throw new Error('A signup failed.')
      if (round >= warmUpRounds) times[state].push(performance.now() - startedAt)
    }
  }
  await stopServing(served)
  for (const receiver of [live, dead]) receiver.close()
  const pending = await store.webhooks!.countPending(deadId)
  await store.close()
  const percentile = (all: number[], part: number) =>
    all.sort((a, b) => a - b)[Math.floor(all.length * part)]!
  for (const [state, all] of Object.entries(times)) {
    const [p50, p99] = [percentile(all, 0.5), percentile(all, 0.99)].map((ms) => ms.toFixed(2))
    console.log(
      `signups, webhook with ${pending} undeliverable events ${state}: p50 ${p50} ms, p99 ${p99} ms`,
    )
  }
  const growth = percentile(times.active, 0.99) / percentile(times.disabled, 0.99) - 1
  check(`p99 grows by at most 10 % (${(growth * 100).toFixed(1)} %)`, growth <= 0.1)
}

async function measureDeliveries(url: string): Promise<void> {
  await prepare(url)
  const count = 20_000
  const store = await openStore(url)
  const port = await freePort()
  const deliveries = new Map<string, number>()
  const receiver = await startReceiving(port, deliveries)
  await addWebhook(store, `http://127.0.0.1:${port}/`, webhookId)
  await enqueue(store, webhookId, count)
  const startedAt = performance.now()
  const webhooks = startWebhooks(store, { key: await importWebhookKey(keyText), allowPrivate: true })
  await until(() => webhooks.outcomes.delivered === count, 'all deliveries', 600_000)
  const rate = count / (performance.now() - startedAt) * 1_000
  await webhooks.close()
  await store.close()
  receiver.kill()
  check(`2,000 deliveries a second (${Math.round(rate).toLocaleString('en')})`, rate >= 2_000)
}

if (process.argv[2] === 'receive') await receive(Number(process.argv[3]))
else await main()
