/** What trials share: replicas as operators run them, a partner with a key on their store, and promises with a verdict. */
import type { ChildProcess } from 'node:child_process'
import process from 'node:process'
import { Pool } from 'undici'
import { openPostgresStore } from '../../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../../adapters/stores/sqlite/store.ts'
import { importWebhookKey } from '../../../adapters/webhooks/deliverer.ts'
import { createWebhookSecret } from '../../../adapters/webhooks/secrets.ts'
import type { LogEvent } from '../../../core/log.ts'
import type { Store } from '../../../core/ports/store.ts'
import { type Start, startServing, stopServing } from '../../support/cli-program.ts'
import { createPartner, PARTNER } from '../../support/partner.ts'

/** A path with a cached response, so that requests only check the key. */
export const READ: string = `/public/plans?partner=${PARTNER}`

/** Options of `serve` without limits, so that only the key matters. */
export const NO_LIMITS: readonly string[] = ['key=0', 'signup=0', 'verify=0', 'authfail=0']
  .flatMap((limit) => ['--limit', limit])

export async function openStore(url: string): Promise<Store> {
  return url.startsWith('sqlite:') ? await openSqliteStore(url.slice(7)) : await openPostgresStore(url)
}

/** The outcome of a request. Instants are those of `performance.now()`. */
export interface Reply {
  readonly askedAt: number
  readonly answeredAt: number
  /** 0 without a response: the connection was refused or lost, or the request timed out. */
  readonly status: number
  readonly body: string
}

export type Client = ReturnType<typeof createClient>

/**
 * A client of one replica, with one connection per concurrent request.
 *
 * @param base The origin of the replica. Paths are below `/service`.
 */
export function createClient(base: string) {
  const pool = new Pool(base, { pipelining: 1, headersTimeout: 15_000, bodyTimeout: 15_000 })
  const failures: Reply[] = []

  async function request(
    path: string,
    { key, body, idempotencyKey }: {
      readonly key?: string
      /** Posted as JSON. */
      readonly body?: unknown
      readonly idempotencyKey?: string
    },
  ) {
    try {
      const response = await pool.request({
        path: `/service${path}`,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...(key !== undefined && { 'x-service-partner-key': key }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.statusCode, body: await response.body.text() }
    } catch {
      return { status: 0, body: '' }
    }
  }

  return {
    /** Responses that no store failure excuses: 5xx other than 503, and lost connections. */
    failures: failures as readonly Reply[],
    async send(path: string, options: Parameters<typeof request>[1] = {}): Promise<Reply> {
      const askedAt = performance.now()
      const reply = { ...await request(path, options), askedAt, answeredAt: performance.now() }
      if (reply.status === 0 || (reply.status >= 500 && reply.status !== 503)) failures.push(reply)
      return reply
    },
    close: () => pool.destroy(),
  }
}

const children: ChildProcess[] = []
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => process.exit(1))

export type Replica = Awaited<ReturnType<typeof startReplica>>

/** Starts a process of the program, which ends with this one. @param args Options of `serve` besides port and name. */
export async function startReplica(
  name: string,
  storeUrl: string,
  args: readonly string[] = NO_LIMITS,
  start: Start = {},
) {
  const served = await startServing(
    ['serve', '--port', '0', '--replica-name', name, ...args],
    storeUrl,
    start,
  )
  const { child, url } = served
  let log = served.words
  child.stderr.on('data', (text: string) => log += text)
  children.push(child)
  const client = createClient(url)
  return {
    name,
    url,
    client,
    child,
    /** Its log so far. */
    events: (): LogEvent[] =>
      log.split('\n').filter((line) => /^\{.*\}$/.test(line)).map((line) => JSON.parse(line)),
    async stop() {
      await client.close()
      return await stopServing(served)
    },
  }
}

/** Creates a partner with a key on an empty store, and starts replicas that serve it. */
export async function startScene(url: string, count = 4) {
  const store = await openStore(url)
  const partner = await createPartner(store)
  const { text: key } = await partner.issue()
  const replicas = await Promise.all(
    Array.from({ length: count }, (_, index) => startReplica(`replica-${index + 1}`, url)),
  )
  return {
    ...partner,
    store,
    key,
    replicas,
    clients: replicas.map(({ client }) => client),
    async close() {
      await Promise.all(replicas.map((replica) => replica.stop()))
      await store.close()
    },
  }
}

/** The key that seals the secrets of webhooks. */
export const WEBHOOK_KEY: string = Buffer.alloc(32, 7).toString('base64')

/** @param number Of at most 20 digits. @returns The id of the webhook. */
export async function addWebhook(store: Store, url: string, number: number): Promise<string> {
  const id = `whk_${String(number).padStart(20, '0')}`
  const key = await importWebhookKey(WEBHOOK_KEY)
  const secrets = [{ sealed: await key.seal(createWebhookSecret(), id), expiresAt: undefined }]
  const at = Date.now()
  await store.webhooks.changeWebhook(id, 'webhook.created', { actor: 'test', at }, () => ({
    id,
    url,
    events: ['signup.created'],
    partner: undefined,
    state: 'active',
    createdAt: at,
    secrets,
    failingSince: undefined,
  }))
  return id
}

/** Prints whether a promise was kept. A broken promise sets exit code 1. */
export function check(promise: string, isKept: boolean): void {
  console.log(`  ${isKept ? 'kept  ' : 'BROKEN'}  ${promise}`)
  if (!isKept) process.exitCode = 1
}

/** Checks that replicas answered every request, whatever happened to their store. */
export function checkFailures(clients: readonly Client[]): void {
  const statuses = clients.flatMap(({ failures }) => failures.map(({ status }) => status || 'no answer'))
  check(`no request gets 500 or loses its connection (${statuses.length})`, statuses.length === 0)
  if (statuses.length > 0) console.log(`          ${[...new Set(statuses)].join(', ')}`)
}

/** Fails the program if it has not ended by then. */
export function endWithin(seconds: number): void {
  setTimeout(() => {
    console.log(`  BROKEN  the trial did not end within ${seconds} s`)
    process.exit(1)
  }, seconds * 1000).unref()
}

/** A count from the command line. @param place Of the argument, from 0. */
export function countAt(place: number, otherwise: number): number {
  const text = process.argv[2 + place] ?? `${otherwise}`
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  console.error(`A count must be an integer of at least 1, not ${text}.`)
  process.exit(2)
}

/** Formats milliseconds. */
export function ms(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? `${Math.round(milliseconds).toLocaleString('en')} ms` : 'never'
}
