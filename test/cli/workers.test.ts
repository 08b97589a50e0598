/** `serve --workers`: one server of four processes is checked in turn, as starting it costs most. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import {
  MAIN,
  preload,
  programOn,
  runProcess,
  type Served,
  startServing,
  stopServing,
} from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { connectRaw } from '../support/raw-connection.ts'

const skip = process.platform === 'linux' ? false : 'only Linux spreads connections over processes'
const quota = 600

interface WorkerEvent {
  readonly event: string
  readonly worker?: number
  readonly pid?: number
  readonly signal?: string
  readonly status?: number
}

const eventsOf = (log: string): WorkerEvent[] => log.trimEnd().split('\n').map((line) => JSON.parse(line))
const pidsOf = (log: string) =>
  eventsOf(log).filter(({ event }) => event === 'worker_started').map(({ pid }) => pid!)

function logOf({ child, words }: Served): () => string {
  let log = words
  child.stderr.on('data', (text: string) => log += text)
  return () => log.slice(0, log.lastIndexOf('\n') + 1)
}

/** Sends a request on a connection of its own, so that any worker may get it. @returns 0 for a lost connection. */
async function send(url: string, key: string): Promise<number> {
  const headers = { 'x-service-partner-key': key, connection: 'close' }
  try {
    const response = await fetch(`${url}/service/public/plans?partner=acme`, { headers })
    await response.text()
    return response.status
  } catch {
    return 0
  }
}

/** Sends so many requests, 16 at once. @returns The number of responses by status. */
async function sendMany(url: string, key: string, requests: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  let sent = 0
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (sent++ < requests) {
      const status = await send(url, key)
      counts[status] = (counts[status] ?? 0) + 1
    }
  }))
  return counts
}

test('four workers serve as one server', { skip }, async (t) => {
  const { store, issue, url: storeUrl } = await createStore()
  const many = { key: { quota: 1_000_000, windowSeconds: 60 } }
  const [limited, revoked, unlimited] = [
    await issue({ limits: { key: { quota, windowSeconds: 3600 } } }),
    await issue({ limits: many }),
    await issue({ limits: many }),
  ]
  const metricsPort = await freePort()
  const args = ['serve', '--workers', '4', '--port', '0', '--log', 'all', '--replica-name', 'web']
  const served = await startServing(
    [...args, '--limit', 'authfail=0', '--metrics', `${metricsPort}`],
    storeUrl,
  )
  t.teardown(() => served.child.kill())
  const log = logOf(served)
  await until(() => pidsOf(log()).length === 4, 'the log to name four workers')
  const firstPids = pidsOf(log())
  /** The sum of `partner_api_requests_total`. */
  const countedRequests = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    return [...metrics.matchAll(/^partner_api_requests_total\{.*\} (\d+)/gm)]
      .reduce((sum, [, value]) => sum + Number(value), 0)
  }

  await t.test('a quota passes once', async (t) => {
    const { 200: accepted = 0, 429: refused = 0 } = await sendMany(served.url, limited.text, quota + 100)
    t.ok(accepted >= 0.98 * quota && accepted <= quota, `${accepted} of ${quota} requests were accepted`)
    t.equal(accepted + refused, quota + 100)
    await until(
      () => eventsOf(log()).filter(({ status }) => status === 429).length === refused,
      'the whole log',
    )
    const servedBy = new Set(
      eventsOf(log()).filter(({ event }) => event === 'request').map(({ worker }) => worker),
    )
    t.same([...servedBy].sort(), [1, 2, 3, 4], 'every worker has answered requests')
    t.equal(await countedRequests(), quota + 100, 'the metrics are of all workers')
    t.equal((await fetch(`http://127.0.0.1:${metricsPort}/ready`)).status, 200)
  })

  await t.test('a change that --wait has reported is in force in every worker', async (t) => {
    t.same(await sendMany(served.url, revoked.text, 64), { 200: 64 })
    const { receipt } = await programOn(storeUrl).json('keys', 'revoke', revoked.key.id, '--wait')
    t.same(
      receipt.replicas.map(({ name, applied }) => [name, applied]).sort(),
      [1, 2, 3, 4].map((number) => [`web/${number}`, true]),
    )
    t.same(await sendMany(served.url, revoked.text, 64), { 401: 64 })
  })

  await t.test('a worker that is killed is replaced, and only its connections are lost', async (t) => {
    const counted = await countedRequests()
    const load = sendMany(served.url, unlimited.text, 400)
    const [victim] = firstPids
    await until(() => eventsOf(log()).some(({ status }) => status === 200), 'requests')
    // Some find a worker that has ended and is still listed.
    const scrapes = Array.from(
      { length: 50 },
      async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).status,
    )
    process.kill(victim!, 'SIGKILL')
    t.same(new Set(await Promise.all(scrapes)), new Set([200]))
    await until(() => pidsOf(log()).length === 5, 'a new worker')
    t.notMatch(log(), 'Warning')
    const { 0: lost = 0, 200: answered, ...others } = await load
    t.ok(await countedRequests() >= counted + 300, 'the counts of the killed worker remain')
    t.same(others, {}, 'no request is refused')
    t.ok(lost <= 16, `${lost} of 400 requests were lost`)
    t.equal(answered, 400 - lost)
    t.match(eventsOf(log()).find(({ event }) => event === 'worker_exited'), {
      pid: victim,
      signal: 'SIGKILL',
    })
    const { receipt } = await programOn(storeUrl).json(...'partners update acme --name A --wait'.split(' '))
    t.equal(receipt.replicas.length, 4, 'the killed worker is not waited for')
    t.ok(receipt.replicas.every(({ applied }) => applied))
  })

  await t.test('all workers drain on a signal', async (t) => {
    const { port } = new URL(served.url)
    // Its counts were in no worker that was killed, and are in memory until now.
    const counted = await issue()
    t.same(await sendMany(served.url, counted.text, 200), { 200: 200 })
    const body = '{"email":"jane@example.com","name":"Jane"}'
    const head =
      `POST /service/partner/signups HTTP/1.1\r\nHost: x\r\nX-Service-Partner-Key: ${unlimited.text}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
    const connections = await Promise.all(
      Array.from({ length: 8 }, () => connectRaw('127.0.0.1', Number(port))),
    )
    for (const connection of connections) connection.write(head)
    for (const connection of connections) t.equal((await connection.answer(true)).status, 100)
    const stopped = stopServing(served)
    await until(() => isRefused(Number(port)), 'the workers to refuse connections')
    // As when a service manager signals the whole group. A worker without a pending request may have ended.
    for (const pid of pidsOf(log()).slice(1)) hasEnded(pid, 'SIGTERM')
    for (const connection of connections) connection.write(body)
    const answers = await Promise.all(connections.map((connection) => connection.answer()))
    t.same(new Set(answers.map(({ status }) => status)), new Set([400]), 'pending requests are answered')
    const { code, stdout, stderr } = await stopped
    t.equal(code, 0)
    t.match(stdout, /^listening on http:\/\/127\.0\.0\.1:\d+\n$/, 'standard output has one line')
    const events = eventsOf(stderr)
    t.equal(events.filter(({ event }) => event === 'store_opened').length, 1)
    t.equal(events.findIndex(({ event }) => event === 'stopped'), events.length - 1, 'the log ends once')
    const today = new Date().toISOString().slice(0, 10)
    const usage = await store.keyUsage(undefined, today, today)
    const ofKey = usage.filter(({ keyId }) => keyId === counted.key.id)
    t.equal(ofKey.reduce((sum, { requests }) => sum + requests, 0), 200, 'no request is uncounted')
  })
  await store.close()
})

const endings = {
  'workers end with a supervisor that is killed': ['SIGKILL'],
  'a second signal ends all workers at once': ['SIGTERM', 'SIGINT'],
} as const
for (const [name, signals] of Object.entries(endings)) {
  test(name, { skip }, async (t) => {
    const { store, url } = await createStore()
    await store.close()
    const args = ['serve', '--workers', '2', '--port', '0', '--drain-delay', '3600']
    const served = await startServing(args, url)
    const log = logOf(served)
    await until(() => pidsOf(log()).length === 2, 'two workers')
    const ended = once(served.child, 'close')
    for (const signal of signals) served.child.kill(signal)
    const [code] = await ended
    // It ends with the signal that the system delivered last.
    t.ok([null, 130, 143].includes(code))
    await until(() => pidsOf(log()).every((pid) => hasEnded(pid)), 'the workers to end')
    t.ok(await isRefused(Number(new URL(served.url).port)))
  })
}

test('workers that cannot start end the server with the reason', { skip }, async (t) => {
  const { store, url } = await createStore()
  await store.close()
  const env = { PARTNER_API_STORE: url }
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const used = await runProcess(['serve', '--workers', '2', '--port', `${port}`, '--json'], { env })
  other.close()
  t.match(used, { code: 1, stdout: '"address_unavailable"' })
  const code = 'if (process.env.PARTNER_API_WORKER) { process.stderr.write("no line end"); process.exit(9) }'
  const failing = await runProcess(['serve', '--workers', '2', '--port', '0'], { env, ...preload(code) })
  t.match(failing, {
    code: 1,
    stdout: '',
    stderr: /no line end\n(.*\n)*error: Worker \d ended with exit code 9/,
  })
  t.match(await programOn('memory:').run('serve', '--workers', '2'), { code: 2, stderr: 'memory: store' })
  t.match(await programOn(url).run('serve', '--workers', '0'), { code: 2, stderr: '--workers' })
})

const binaries = fileURLToPath(new URL('../node_modules/.bin/', import.meta.url))
const [, preloaded = ''] = preload('console.error(`{"event":"preloaded"}`)').nodeArguments!
const runtimes = {
  Bun: [`${binaries}bun`, MAIN],
  Deno: [`${binaries}deno`, 'run', '-A', '--preload', preloaded, MAIN],
}

for (const [name, command] of Object.entries(runtimes)) {
  test(`${name} serves with workers`, { skip }, async (t) => {
    const { store, issue, url } = await createStore()
    const { text: key } = await issue()
    await store.close()
    const served = await startServing(['serve', '--workers', '2', '--port', '0', '--log', 'all'], url, {
      command,
    })
    t.teardown(() => served.child.kill())
    t.same(await sendMany(served.url, key, 40), { 200: 40 })
    const { code, stderr } = await stopServing(served)
    t.equal(code, 0)
    const servedBy = eventsOf(stderr).filter(({ event }) => event === 'request').map(({ worker }) => worker)
    t.same([...new Set(servedBy)].sort(), [1, 2], 'both workers have answered requests')
    const preloads = eventsOf(stderr).filter(({ event }) => event === 'preloaded')
    t.equal(preloads.length, name === 'Deno' ? 3 : 0, 'workers get the options of Deno')
  })
}

/** @param signal What the process gets if it has not. */
function hasEnded(pid: number, signal: NodeJS.Signals | 0 = 0): boolean {
  try {
    return !process.kill(pid, signal)
  } catch {
    return true
  }
}

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(true))
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })
}
