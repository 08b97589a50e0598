/** The load on a cluster, and what its clients saw. */
import { createKeyAdministration } from '../../../../core/admin/keys.ts'
import type { Store } from '../../../../core/ports/store.ts'
import { median } from '../../../bench/report.ts'
import { until } from '../../../postgres/until.ts'
import { runProgram } from '../../../support/cli-program.ts'
import { type Client, type Reply, startLoad } from '../client.ts'
import { startSigning } from '../signing.ts'
import { PARTNER, READ } from '../tenant.ts'
import { ms } from '../verdict.ts'
import { PATIENCE_MS } from './nodes.ts'

/** One client that sends one request after the other. */
interface Lane {
  readonly kind: string
  readonly replies: readonly Reply[]
}

/** A key whose revocation was confirmed by `--wait`. */
interface Receipt {
  readonly id: string
  readonly at: number
  /** Milliseconds from the start of the command. */
  readonly tookMs: number
}

const pauseMs = 25
/** How long a key is used after its receipt: much longer than servers use what they know. */
const afterwardsMs = 3_000
const perKind = 2

export type ClusterLoad = Awaited<ReturnType<typeof startClusterLoad>>

/**
 * Starts the load: on each client reads, searches, checks of a key and signups with retries, and an operator who issues
 * keys and revokes them with `--wait`.
 *
 * @param number Of this load: its signups are not those of another.
 * @returns When every lane has had responses.
 */
export async function startClusterLoad(
  clients: readonly Client[],
  { store, url, key, number }: {
    readonly store: Store
    readonly url: string
    readonly key: string
    readonly number: number
  },
) {
  const lanes: Lane[] = []
  let searches = 0

  const requests: Readonly<Record<string, (client: Client) => Promise<Reply>>> = {
    read: (client) => client.send(READ, { key }),
    search: (client) =>
      client.send(
        `/public/profiles?partner=${PARTNER}&q=${WORDS[searches++ % WORDS.length]}&limit=${
          1 + searches % 100
        }`,
        { key },
      ),
    'verify-key': (client) => client.send('/developer/verify-key', { key, body: { partner: PARTNER } }),
  }
  const loads = Object.entries(requests).flatMap(([kind, send]) =>
    clients.flatMap((client) =>
      Array.from({ length: perKind }, () => {
        const load = startLoad(() => send(client), 1, pauseMs)
        lanes.push({ kind, replies: load.replies })
        return load
      })
    )
  )
  const signings = Array.from({ length: clients.length * perKind }, (_, index) => {
    const replies: Reply[] = []
    lanes.push({ kind: 'signup', replies })
    const recorded = clients.map((client): Client => ({
      ...client,
      async send(path, request) {
        const reply = await client.send(path, request)
        replies.push(reply)
        return reply
      },
    }))
    return startSigning(recorded, key, 1, number * 10_000_000 + index * 1_000_000)
  })
  const revoking = startRevokingByCommand(clients, store, url)

  const isServed = (since: number) => (lane: Lane) => lane.replies.some((reply) => isGood(reply, since))
  /** Resolves when every lane was served with something that it asked for after this instant. */
  const served = (since: number) =>
    until(() => lanes.every(isServed(since)), 'every client to be served', PATIENCE_MS)
  await served(performance.now())
  await until(() => revoking.receipts.length > 0, 'a first receipt', PATIENCE_MS)

  return {
    served,
    receipts: revoking.receipts,
    accepted: revoking.accepted,
    /** Keys that were issued, and are unknown. */
    lostKeys: revoking.lost,
    acknowledged: () => signings.flatMap((signing) => signing.acknowledged),
    /** The number of signup attempts that were repeated. */
    repeated: () => signings.reduce((sum, signing) => sum + signing.retries(), 0),
    lanes,
    async stop() {
      await Promise.all([...loads, ...signings, revoking].map((one) => one.stop()))
    },
  }
}

/** Two operators, each with one key after the other. */
function startRevokingByCommand(clients: readonly Client[], store: Store, url: string) {
  const keys = createKeyAdministration(store, { actor: 'trial' })
  const receipts: Receipt[] = []
  const accepted: { readonly id: string; readonly afterMs: number }[] = []
  const lost: string[] = []
  const using: Promise<unknown>[] = []
  let isOver = false

  async function useKey(client: Client, id: string, key: string, receivedAt: () => number): Promise<void> {
    while (performance.now() < receivedAt() + afterwardsMs && !lost.includes(id)) {
      const { status, askedAt } = await client.send(READ, { key })
      if (status === 200 && askedAt > receivedAt()) accepted.push({ id, afterMs: askedAt - receivedAt() })
      await pause(pauseMs)
    }
  }

  async function revokeOne(): Promise<void> {
    const { key: { id }, text } = await retry(() =>
      keys.issue({ partner: PARTNER, name: 'doomed', environment: 'live' })
    )
    let at = Infinity
    using.push(...clients.map((client) => useKey(client, id, text, () => at)))
    await pause(8 * pauseMs)
    const startedAt = performance.now()
    const isLost = await retry(async () => {
      const { code, stderr } = await runProgram(['keys', 'revoke', id, '--wait', '--json'], {
        env: { PARTNER_API_STORE: url },
      })
      if (code === 3) throw new Error(stderr)
      return code !== 0
    })
    if (isLost) return void lost.push(id)
    at = performance.now()
    receipts.push({ id, at, tookMs: at - startedAt })
  }

  async function retry<T>(command: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await command()
      } catch {
        await pause(8 * pauseMs)
      }
    }
  }

  const operators = [0, 1].map(async () => {
    while (!isOver) {
      await revokeOne()
      await pause(8 * pauseMs)
    }
  })

  return {
    receipts,
    accepted,
    lost,
    async stop() {
      isOver = true
      await Promise.all(operators)
      await Promise.all(using)
    },
  }
}

/** The longest time that each client of a kind went without being served, and the responses other than 2xx. */
export function describeLanes(lanes: readonly Lane[], since: number): void {
  for (const kind of new Set(lanes.map((lane) => lane.kind))) {
    const own = lanes.filter((lane) => lane.kind === kind)
    const gaps = own.map(({ replies }) => longestGap(replies, since))
    const bad = new Map<string, number>()
    for (const reply of own.flatMap(({ replies }) => replies)) {
      if (reply.status < 300 && reply.status > 0) continue
      const code = codeOf(reply)
      bad.set(code, (bad.get(code) ?? 0) + 1)
    }
    const sent = own.reduce((sum, { replies }) => sum + replies.length, 0)
    const errors = Array.from(bad, ([code, count]) => `${count} × ${code}`).join(', ') || 'no errors'
    console.log(
      `  ${kind.padEnd(10)} not served for ${ms(median(gaps))} (p50), ${
        ms(Math.max(...gaps))
      } (max); ${sent} sent, ${errors}`,
    )
  }
}

/** Of the time from the fault on. */
export function longestGap(replies: readonly Reply[], since: number): number {
  let longest = 0
  let last = since
  for (const reply of replies) {
    if (!isGood(reply, -Infinity)) continue
    if (reply.answeredAt > since) longest = Math.max(longest, reply.answeredAt - last)
    last = Math.max(since, reply.answeredAt)
  }
  return longest
}

function isGood({ status, askedAt }: Reply, since: number): boolean {
  return status >= 200 && status < 300 && askedAt > since
}

function codeOf({ status, body }: Reply): string {
  if (status === 0) return 'no answer'
  try {
    return `${status} ${JSON.parse(body).code}`
  } catch {
    return `${status} of HAProxy`
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

/** Beginnings of words in the profiles. */
const WORDS = ['tr', 'lo', 'fr', 'ma', 'de', 'co', 'in', 'se', 'pl', 'ca', 'st', 'ba']
