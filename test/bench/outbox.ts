/**
 * The outbox of webhooks, on SQLite in a file and on PostgreSQL: what signups cost with and without one, and how fast
 * deliveries are leased and settled. Deliveries are not sent: the receiver of the retries is away.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { drawId } from '../../core/lib/ids.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Delivery, Webhook } from '../../core/ports/webhooks.ts'
import { createEvent } from '../../core/webhooks/events.ts'
import { apply, createPartners, key, signup, stamp } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'
import { figure, median, quantile, type Row } from './report.ts'

const rounds = 20
const signupsPerRound = 150
const undeliverable = 1_000
const history = 100_000
const drained = 20_000
const batch = 200

export async function run(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const rows = await outboxRows('SQLite', () => openSqliteStore(join(directory, `${drawId('store-')}.db`)))
    if (hasServer() !== undefined) return rows
    const server = await startServer()
    try {
      return [
        ...rows,
        ...await outboxRows('Postgres', async () => openPostgresStore(await server.createDatabase())),
      ]
    } finally {
      await server.close()
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function outboxRows(kind: string, open: () => Promise<Store>): Promise<Row[]> {
  const [plain, subscribed, queued] = [await open(), await open(), await open()]
  try {
    for (const store of [plain, subscribed, queued]) {
      await createPartners(store, 'acme')
      await apply(store, { type: 'key.issued', key: key() })
    }
    const [receiver, away] = [await subscribe(subscribed), await subscribe(queued, 'key.expiring')]
    const events = (count: number) =>
      Array.from(
        { length: count },
        () =>
          createEvent({ id: drawId('msg_'), type: 'webhook.test', partner: 'acme', createdAt: Date.now() }, {
            text: 'x'.repeat(500),
          }),
      )
    const enqueue = async (store: Store, webhook: string, count: number) => {
      for (let left = count; left > 0; left -= 1_000) {
        await store.webhooks!.enqueue(events(Math.min(left, 1_000)), webhook)
      }
    }
    await enqueue(queued, away, undeliverable)

    const times = { plain: [], subscribed: [], queued: [] } as Record<string, number[]>
    const stop = retryForever(queued, away)
    for (let round = 0; round < rounds; round++) {
      for (const [name, store] of Object.entries({ plain, subscribed, queued })) {
        times[name]!.push(...await timeSignups(store))
      }
    }
    await stop()
    const described = (of: readonly number[]) =>
      `p50 ${figure(median(of), 'µs')}, p99 ${figure(quantile(of, 0.99), 'µs')}`
    const growth = quantile(times.queued!, 0.99) / quantile(times.plain!, 0.99)

    await enqueue(subscribed, receiver, history)
    await drain(subscribed, receiver)
    await enqueue(subscribed, receiver, drained)
    const { leases, settles, seconds, count } = await drain(subscribed, receiver)
    const pruneStart = performance.now()
    await subscribed.webhooks!.changeWebhook(receiver, 'webhook.removed', stamp, () => undefined)
    const { length: pruned } = await subscribed.webhooks!.pruneDeliveries()
    const pruneMs = performance.now() - pruneStart
    const worst = (of: readonly number[]) =>
      `p50 ${figure(median(of), 'ms')}, worst ${figure(Math.max(...of), 'ms')}`
    const part = 'outbox'
    // Only SQLite's transactions hold the event loop of the server.
    const heldLoop = (ms: number) => kind === 'SQLite' ? { target: '≤ 20 ms', met: ms <= 20 } : {}
    return [
      {
        part,
        what: `${kind}: signup, one webhook against none`,
        ours: described(times.subscribed!),
        against: described(times.plain!),
      },
      {
        ...{ part, what: `${kind}: signup, ${undeliverable} undeliverable against no webhook` },
        ...{
          ours: described(times.queued!),
          against: described(times.plain!),
          ratio: `p99 ${growth.toFixed(2)} ×`,
        },
        ...{ target: '≤ 1.10 ×', met: growth <= 1.1 },
      },
      {
        ...{
          part,
          what: `${kind}: deliveries leased and settled, beside ${history.toLocaleString('en')} others`,
        },
        ...{
          ours: `${Math.round(count / seconds).toLocaleString('en')}/s`,
          target: '≥ 2,000/s',
          met: count / seconds >= 2_000,
        },
      },
      {
        part,
        what: `${kind}: lease of ${batch}`,
        ours: worst(leases),
        ...heldLoop(Math.max(...leases)),
      },
      {
        part,
        what: `${kind}: settlement of ${batch}`,
        ours: worst(settles),
        ...heldLoop(Math.max(...settles)),
      },
      {
        part,
        what: `${kind}: removal of ${pruned}`,
        ours: figure(pruneMs, 'ms'),
        ...heldLoop(pruneMs),
      },
    ]
  } finally {
    for (const store of [plain, subscribed, queued]) await store.close()
  }
}

async function subscribe(store: Store, event: Webhook['events'][number] = 'signup.created'): Promise<string> {
  const id = drawId('whk_')
  const webhook = {
    id,
    url: 'https://hooks.example/',
    events: [event],
    partner: undefined,
    state: 'active',
  } as const
  const more = { createdAt: Date.now(), secrets: [], failingSince: undefined }
  await store.webhooks!.changeWebhook(id, 'webhook.created', stamp, () => ({ ...webhook, ...more }))
  return id
}

let signups = 0

/** Microseconds of each. */
async function timeSignups(store: Store): Promise<number[]> {
  const times: number[] = []
  for (let count = 0; count < signupsPerRound; count++) {
    const one = signup(String(++signups), {
      createdAt: Date.now(),
      message: 'Please call me back. '.repeat(10),
    })
    const startedAt = performance.now()
    await store.createSignup(one, {
      key: one.id,
      fingerprint: 'f'.repeat(64),
      expiresAt: Date.now() + 86_400_000,
    })
    times.push((performance.now() - startedAt) * 1000)
  }
  return times
}

/** Leases what is due twenty times a second; every attempt fails, and is repeated within five seconds. */
function retryForever(store: Store, webhook: string): () => Promise<void> {
  let isStopped = false
  const work = (async () => {
    while (!isStopped) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      const due = (await store.webhooks!.dueWebhooks()).length === 0
        ? []
        : await store.webhooks!.leaseDeliveries(webhook, 100, 60_000)
      await settle(store, due, 'pending')
    }
  })()
  return async () => {
    isStopped = true
    await work
  }
}

async function settle(
  store: Store,
  deliveries: readonly Delivery[],
  state: Delivery['state'],
): Promise<void> {
  await store.webhooks!.settleDeliveries(deliveries.map(({ webhook, id }) => ({
    ...{ webhook, id, state, retryMs: 1_000 + Math.random() * 4_000 },
    ...{ lastStatus: state === 'delivered' ? 204 : undefined, lastError: undefined },
  })))
}

async function drain(store: Store, webhook: string) {
  const [leases, settles]: [number[], number[]] = [[], []]
  const start = performance.now()
  let count = 0
  for (;;) {
    const before = performance.now()
    const leased = await store.webhooks!.leaseDeliveries(webhook, batch, 60_000)
    const between = performance.now()
    if (leased.length === 0) return { leases, settles, count, seconds: (between - start) / 1000 }
    leases.push(between - before)
    await settle(store, leased, 'delivered')
    settles.push(performance.now() - between)
    count += leased.length
  }
}
