/**
 * Webhooks that fail in every way at once: `node test/integration/trials/webhook-faults.ts SECONDS node|bun|deno`. Needs
 * Linux and root: it runs in a network namespace of its own, with a name server that leaves some names unanswered.
 *
 * Receivers with silent name servers, informational responses without end, slow responses, resets, and names that change
 * their addresses, beside signups, verify-key and cut connections to PostgreSQL, which is also found by its name. Compared
 * with half the time without those receivers.
 */
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { quantile } from '../../bench/report.ts'
import { startServer } from '../../postgres/server.ts'
import { MAIN, temporaryFolder } from '../../support/cli-program.ts'
import { createPartner } from '../../support/partner.ts'
import { signUp } from './load.ts'
import {
  addWebhook,
  check,
  type Client,
  countAt,
  endWithin,
  ms,
  NO_LIMITS,
  openStore,
  type Reply,
  startReplica,
  WEBHOOK_KEY,
} from './setup.ts'

const inNamespace = 'PARTNER_API_TRIAL_IN_NAMESPACE'
const binaries = fileURLToPath(new URL('../../node_modules/.bin/', import.meta.url))
const runtime = process.argv[3] ?? 'node'
const command = {
  node: [process.execPath, MAIN],
  bun: [`${binaries}bun`, MAIN],
  deno: [`${binaries}deno`, 'run', '-A', MAIN],
}[runtime]

function enterNamespace(): void {
  const file = join(temporaryFolder(), 'resolv.conf')
  writeFileSync(file, 'nameserver 127.0.0.1\n', { mode: 0o644 })
  const script = `ip link set lo up && mount --bind ${file} /etc/resolv.conf && exec "$@"`
  const { status } = spawnSync('unshare', [
    '-mn',
    'sh',
    '-c',
    script,
    'sh',
    ...process.execArgv,
    ...process.argv,
  ], {
    stdio: 'inherit',
    env: { ...process.env, [inNamespace]: '1' },
  })
  process.exitCode = status ?? 1
}

/** Answers with the loopback, but for `silent…`, and `rebind…` with an unreachable address every other time. */
async function startNameServer(): Promise<void> {
  const server = createSocket('udp4')
  let rebinds = 0
  server.on('message', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5
    const name = query.subarray(13, end).toString('latin1')
    if (name.startsWith('silent')) return
    const isIPv4 = query.readUInt16BE(end - 4) === 1
    const bytes = name.startsWith('rebind') && rebinds++ % 2 ? [10, 255, 255, 1] : [127, 0, 0, 1]
    const head = [...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIPv4 ? 1 : 0, 0, 0, 0, 0]
    const answer = isIPv4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...bytes] : []
    server.send(Buffer.from([...head, ...query.subarray(12, end), ...answer]), port, address)
  })
  server.bind(53, '127.0.0.1')
  await once(server, 'listening')
}

/** A receiver that treats a connection with a request as it likes. @returns Its port. */
async function listen(respond: (socket: Socket, request: string) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).setEncoding('utf8').on('data', (text: string) => respond(socket, text))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'

/** The URLs of receivers by fault. */
async function startFaults(): Promise<string[]> {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(2_000)
  const flood = await listen((socket) => {
    const write = () => void (socket.writable && socket.write(hint))
    socket.on('drain', write)
    write()
  })
  const slow = await listen((socket) => void setTimeout(() => socket.write(ok), 8_000))
  const reset = await listen((socket) => void socket.resetAndDestroy())
  const plain = await listen((socket) => void socket.write(ok))
  return Array.from({ length: 6 }, (_, index) => [
    `http://silent${index}.example/`,
    `http://flood.example:${flood}/${index}`,
    `http://slow.example:${slow}/${index}`,
    `http://slow${index}.example:${slow}/`,
    `http://reset.example:${reset}/${index}`,
    `http://rebind${index}.example:${plain}/`,
  ]).flat()
}

/** Signs up and verifies for some time. */
async function load(client: Client, key: string, seconds: number, cut: () => Promise<void>) {
  const verifyMs: number[] = []
  const failures: string[] = []
  /** When each signup was acknowledged. */
  const acknowledged = new Map<string, number>()
  const end = performance.now() + seconds * 1_000
  const repeat = async (pauseMs: number, work: () => Promise<void>) => {
    for (; performance.now() < end; await sleep(pauseMs)) await work()
  }
  const fail = ({ status, body }: Reply) => void failures.push(status ? JSON.parse(body).code : 'no answer')
  const signUpNext = async () => {
    const reply = await signUp(client, key, number++)
    if (reply.status === 201) acknowledged.set(JSON.parse(reply.body).data.id, reply.answeredAt)
    else fail(reply)
  }
  const verify = async () => {
    const request = { key, body: { partner: 'acme' } }
    const reply = await client.send('/developer/verify-key', request)
    if (reply.status !== 200) fail(reply)
    verifyMs.push(reply.answeredAt - reply.askedAt)
  }
  await Promise.all([repeat(150, signUpNext), repeat(1_000, cut), ...[1, 2, 3].map(() => repeat(15, verify))])
  return { verifyMs, failures, acknowledged }
}

let number = 0

async function main(): Promise<void> {
  const seconds = countAt(0, 120)
  endWithin(seconds * 2 + 180)
  await startNameServer()
  const database = await startServer()
  const url = await database.createDatabase()
  const store = await openStore(url)
  const { text: key } = await (await createPartner(store)).issue()
  const arrivals = new Map<string, number>()
  const live = await listen((socket, request) => {
    const id = /"id":"(\w+)"/.exec(request)?.[1]
    if (id !== undefined && !arrivals.has(id)) arrivals.set(id, performance.now())
    socket.write(ok)
  })
  await addWebhook(store, `http://live.example:${live}/`, 0)
  const { client, stop } = await startReplica(
    runtime,
    url.replace('127.0.0.1', 'database.example'),
    [...NO_LIMITS, '--allow-private-webhooks', '--log', 'off'],
    { env: { PARTNER_API_WEBHOOK_KEY: WEBHOOK_KEY }, command: command! },
  )
  let cuts = 0
  const { admin } = database
  const cut = async () => {
    const rows = await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE usename = ${database.user} AND pid <> pg_backend_pid()`
    cuts += rows.length
  }
  const before = await load(client, key, Math.ceil(seconds / 2), cut)
  for (const [index, fault] of (await startFaults()).entries()) await addWebhook(store, fault, index + 1)
  const during = await load(client, key, seconds, cut)
  // Those of the last moment.
  await sleep(2_000)
  const delays = Array.from(
    during.acknowledged,
    ([id, at]) => Math.max(0, (arrivals.get(id) ?? Infinity) - at),
  )
  const failing = (await store.webhooks.listWebhooks()).filter((webhook) =>
    webhook.failingSince !== undefined
  )
  await stop()
  await store.close()
  await database.close()
  console.log(
    `${runtime}: ${during.acknowledged.size} signups, ${during.verifyMs.length} verify-key, ${cuts} cut connections, ` +
      `${failing.length} of 36 faulty webhooks failing`,
  )
  for (const [phase, { failures }] of Object.entries({ without: before, with: during })) {
    const codes = [...new Set(failures)].join(', ')
    check(`no request fails ${phase} faulty receivers (${failures.length}) ${codes}`, failures.length === 0)
  }
  const base = quantile(before.verifyMs, 0.99)
  const p99 = quantile(during.verifyMs, 0.99)
  check(`p99 of verify-key is at most doubled (${ms(base)}, ${ms(p99)})`, p99 <= 2 * base)
  const late = delays.filter((delay) => delay > 2_000).length
  check(
    `a healthy receiver gets events within 2 s (p99 ${ms(quantile(delays, 0.99))}, ${late} later)`,
    late === 0,
  )
  process.exit()
}

if (process.env[inNamespace]) await main()
else enterNamespace()
