/** The load on a cluster, and what its clients saw. */
import type { Store } from '../../../../core/ports/store.ts'
import { median } from '../../../bench/report.ts'
import { until } from '../../../postgres/until.ts'
import { runProgram } from '../../../support/cli-program.ts'
import { PARTNER } from '../../../support/partner.ts'
import { startLoad, startRevoking, startSigning } from '../load.ts'
import { type Client, ms, READ, type Reply } from '../setup.ts'
import { PATIENCE_MS } from './nodes.ts'

/** One client that sends one request after the other. */
interface Lane {
  readonly kind: string
  readonly replies: readonly Reply[]
}

const pauseMs = 25
const perKind = 2

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
  const revoking = startRevoking(clients, store, {
    async revoke(id) {
      const env = { PARTNER_API_STORE: url }
      const { code, stderr } = await runProgram(['keys', 'revoke', id, '--wait', '--json'], { env })
      if (code === 3) throw new Error(stderr)
      return code === 0
    },
    operators: 2,
    pauseMs,
    // Much longer than servers use what they know.
    afterwardsMs: 3_000,
  })

  const isServed = (since: number) => (lane: Lane) => lane.replies.some((reply) => isGood(reply, since))
  /** Resolves when every lane was served with something that it asked for after this instant. */
  const served = (since: number) =>
    until(() => lanes.every(isServed(since)), 'every client to be served', PATIENCE_MS).catch((error) => {
      describeLanes(lanes, since)
      throw error
    })
  await served(performance.now())
  await until(() => revoking.revoked.length > 0, 'a first receipt', PATIENCE_MS)

  return {
    served,
    revoking,
    acknowledged: () => signings.flatMap((signing) => signing.acknowledged),
    /** The number of signup attempts that were repeated. */
    repeated: () => signings.reduce((sum, signing) => sum + signing.retries(), 0),
    lanes,
    async stop() {
      await Promise.all([...loads, ...signings, revoking].map((one) => one.stop()))
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
function longestGap(replies: readonly Reply[], since: number): number {
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

/** Beginnings of words in the profiles. */
const WORDS = ['tr', 'lo', 'fr', 'ma', 'de', 'co', 'in', 'se', 'pl', 'ca', 'st', 'ba']
