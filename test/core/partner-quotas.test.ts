/** Quotas that the live keys of a partner share: months, clocks, restarts, and the events of their end. */
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import {
  consumeQuotas,
  createLocalLimiter,
  type Limiter,
  type QuotaObserver,
} from '../../core/limits/limiter.ts'
import { readQuotaUse, storedSeconds } from '../../core/limits/partner-quotas.ts'
import { createPolicy, DEFAULT_LIMITS, policiesFor } from '../../core/limits/policies.ts'
import { createSharedLimiter } from '../../core/limits/shared-limiter.ts'
import type { Environment, Key, LimitOverrides, Partner } from '../../core/model.ts'
import type { QuotaStore } from '../../core/ports/quotas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import { createQuotaNotifier } from '../../core/webhooks/quota-events.ts'
import { until } from '../postgres/until.ts'
import { newFile } from '../support/cli-program.ts'
import { createPartner, PARTNER } from '../support/partner.ts'

const off = { quota: 0, windowSeconds: 60 }
const days = 2_678_400
const at = (instant: string) => Date.parse(instant)

/** Counts a request of a key of the partner. @returns The RateLimit field and, of a refused one, `Retry-After`. */
async function request(
  limiter: Limiter,
  limits: LimitOverrides,
  now: number,
  { environment = 'live', key: id = 'one', quotaCounted = () => {}, elapsed = 0 }: {
    environment?: Environment
    key?: string
    quotaCounted?: QuotaObserver
    elapsed?: number
  } = {},
): Promise<string | undefined> {
  const key = { id, environment, limits: {} } as Key
  const partner = { slug: PARTNER, limits } as Partner
  const policies = policiesFor({ ...DEFAULT_LIMITS, key: off }, { key, partner })
  const result = await consumeQuotas(
    { limiter, quotaCounted },
    { key, partner, policies },
    { limits: ['key'] },
    elapsed,
    now,
  )
  const wait = result?.retryAfterSeconds
  return result && result.limit + (wait === undefined ? '' : ` wait ${wait}`)
}

const monthly = (quota: number): LimitOverrides => ({ month: { quota } })

async function limiters(): Promise<Record<string, Limiter>> {
  const { quotas } = await openSqliteStore(newFile(), { shareLimits: false })
  const options = { replicas: () => 1, elapsed: () => 0, localFallback: false }
  return { local: createLocalLimiter(), shared: createSharedLimiter(quotas, options) }
}

t.test('a month ends at midnight in UTC, and each has its own count whatever the clock does', async (t) => {
  for (const [name, limiter] of Object.entries(await limiters())) {
    const passes = (instant: string) => request(limiter, monthly(3), at(instant))
    t.equal(await passes('2028-02-10T00:00:00Z'), `"month";r=2;t=${20 * 86_400}`, `${name}: a leap year`)
    t.equal(await passes('2028-02-29T23:59:59.001Z'), '"month";r=1;t=1', 'its last second')
    t.equal(await passes('2028-02-29T23:59:59.999Z'), '"month";r=0;t=1')
    t.equal(await passes('2028-02-29T23:59:59.999Z'), '"month";r=0;t=1 wait 1')
    t.equal(await passes('2028-03-01T00:00:00Z'), `"month";r=2;t=${31 * 86_400}`, 'the next month')
    t.equal(await passes('2028-02-15T00:00:00Z'), `"month";r=0;t=${15 * 86_400} wait ${15 * 86_400}`, 'back')
    t.equal(
      await passes('2031-03-01T00:00:00Z'),
      `"month";r=2;t=${31 * 86_400}`,
      'the same month of another year',
    )
    t.equal(await passes('2028-03-31T00:00:00Z'), '"month";r=1;t=86400')
  }
})

t.test('a store whose clock jumps a month ahead keeps the count of a month', async (t) => {
  const file = newFile()
  const { quotas } = await openSqliteStore(file)
  const windowSeconds = storedSeconds({ name: 'month', windowSeconds: days })
  const lease = (subject: string, wanted = 5) =>
    quotas!.leaseQuota({ policy: 'month', subject, quota: 9, windowSeconds, wanted })
  await lease('acme 2026-11')
  const database = new DatabaseSync(`${file}-servers`)
  const month = 32 * 86_400_000
  database.exec(
    `UPDATE quota_term SET opened_at = opened_at - ${month}, ends_at = ends_at - ${month}, term = term - ${month}`,
  )
  // Windows that have ended are deleted when others begin.
  for (let count = 0; count < 130; count++) await lease(`p${count} 2026-12`)
  t.match(await lease('acme 2026-11', 0), { remaining: 4 })
  database.exec(
    `UPDATE quota_term SET opened_at = opened_at + 2 * ${month}, ends_at = ends_at + 2 * ${month}`,
  )
  t.match(await lease('acme 2026-11'), { granted: 4, remaining: 0 }, 'and back')
  database.close()
})

/** A quota store that counts in the way of the quotas of partners, one task later. */
function createQuotaLedger() {
  const taken = new Map<string, number>()
  let calls = 0
  const store: QuotaStore = {
    sharesLimits: true,
    leastWindowSeconds: 1,
    async leaseQuota({ subject, quota, wanted }) {
      calls++
      await Promise.resolve()
      const before = taken.get(subject) ?? 0
      const granted = Math.max(0, Math.min(wanted, quota - before))
      if (granted > 0) taken.set(subject, before + granted)
      return { granted, remaining: Math.max(0, quota - before - granted), resetMs: 86_400_000, term: 1 }
    },
    returnQuotas(returns) {
      for (const { subject, unused } of returns) taken.set(subject, taken.get(subject)! - unused)
    },
  }
  let elapsed = 0
  const options = { replicas: () => 1, elapsed: () => elapsed, localFallback: false }
  return {
    taken,
    calls: () => calls,
    elapsed: () => elapsed,
    pass: (ms: number) => elapsed += ms,
    server: () => createSharedLimiter(store, options),
  }
}

t.test('however many partners a server counts, it returns each lease once', async (t) => {
  const ledger = createQuotaLedger()
  const limiter = ledger.server()
  const one = createPolicy('month', { quota: 100, windowSeconds: days })
  const partners = 52_000
  const rounds = 2
  for (let count = 0; count < partners * rounds; count++) {
    // Several at once: windows are evicted during a lease, too.
    const request = limiter.consume(one, `p${count % partners} 2026-11`, 0)
    if (count % 8 === 0) await request
  }
  await new Promise((resolve) => setTimeout(resolve))
  await limiter.close()
  const wrong = [...ledger.taken].filter(([, taken]) => taken !== rounds)
  t.strictSame([ledger.taken.size, wrong.length], [partners, 0], 'what is counted is what passed')
})

t.test('a quota that is changed during a lease is not exceeded', async (t) => {
  for (const changed of [510, 500, 30]) {
    const limiter = createQuotaLedger().server()
    let passed = 0
    const send = async (quota: number, count: number) => {
      const policy = createPolicy('month', { quota, windowSeconds: days })
      const all = Array.from({ length: count }, () => limiter.consume(policy, 'acme 2026-11', 0))
      for (const { allowed } of await Promise.all(all)) if (allowed) passed++
    }
    const first = [send(505, 1), send(505, 11)]
    // The first lease is held, and the second is pending.
    for (let task = 0; task < 5; task++) await Promise.resolve()
    const second = send(changed, 1)
    await Promise.all([...first, second])
    for (let round = 0; round < changed; round++) await send(changed, 3)
    t.equal(passed, changed)
  }
})

t.test('a spent quota is looked up each second, and what other servers return passes', async (t) => {
  const ledger = createQuotaLedger()
  const here = ledger.server()
  const drained = ledger.server()
  const now = at('2026-11-24T00:00:00Z')
  const passes = async (limiter = here) =>
    !(await request(limiter, monthly(100), now, { elapsed: ledger.elapsed() }))!.includes('wait')
  t.ok(await passes(drained))
  let count = 0
  while (await passes()) count++
  t.equal(count, 98, 'one is held')
  const before = ledger.calls()
  for (let refused = 0; refused < 1000; refused++) {
    ledger.pass(5)
    if (await passes()) t.fail('passed')
  }
  t.equal(ledger.calls() - before, 5, 'in five seconds')
  await drained.close()
  t.notOk(await passes(), 'until the next look-up')
  ledger.pass(1000)
  t.ok(await passes())
  t.notOk(await passes())

  const another = ledger.server()
  const hundred = createPolicy('month', { quota: 100, windowSeconds: days })
  const other = (limiter: Limiter) => limiter.consume(hundred, 'other 2026-11', ledger.elapsed())
  await other(another)
  while ((await other(here)).allowed);
  await another.close()
  t.match(await here.peek(hundred, 'other 2026-11', ledger.elapsed()), { remaining: 1 })
  t.ok((await other(here)).allowed, 'what verify-key shows passes')
})

t.test('servers that start when a month is spent do not count in the other quota', async (t) => {
  const { taken, server } = createQuotaLedger()
  const now = at('2026-11-24T00:00:00Z')
  const limits = { ...monthly(4), partner: { quota: 90, windowSeconds: days } }
  const first = server()
  for (let count = 0; count < 4; count++) await request(first, limits, now)
  for (let start = 0; start < 3; start++) {
    const limiter = server()
    const refused = await Promise.all(Array.from({ length: 5 }, () => request(limiter, limits, now)))
    for (const field of refused) t.match(field, /^"month";r=0;t=\d+ wait \d+$/)
  }
  t.equal(taken.get(PARTNER), 4)
})

t.test('without the store, nothing that needs a lease of a long quota passes', async (t) => {
  let isSilent = true
  const quotas: QuotaStore = {
    sharesLimits: true,
    leastWindowSeconds: 1,
    leaseQuota: ({ quota, wanted }) => {
      if (isSilent) throw new Error('silent')
      return { granted: wanted, remaining: quota - wanted, resetMs: 60_000, term: 1 }
    },
    returnQuotas: () => {},
  }
  const limiter = createSharedLimiter(quotas, { replicas: () => 1, elapsed: () => 0, localFallback: true })
  const window = (windowSeconds: number) => ({ partner: { quota: 100, windowSeconds } })
  const passes = (limits: LimitOverrides) => request(limiter, limits, 0)
  await t.rejects(passes(monthly(100)), { message: 'silent' })
  await t.rejects(passes(window(3_600)), { message: 'silent' })
  t.match(await passes(window(3_599)), /^"partner";r=99/, 'a shorter one falls back')
  isSilent = false
  t.match(await passes(monthly(100)), /r=99/)
  isSilent = true
  t.match(await passes(monthly(100)), /r=98/, 'a lease is used up')
  await t.rejects(passes(monthly(100)), { message: 'silent' })
})

t.test('servers that are restarted or killed do not forget a month, though they share no other limit', async (t) => {
  const file = newFile()
  const operator = await openSqliteStore(file)
  const { issue, partners } = await createPartner(operator)
  await partners.update(PARTNER, { limits: { set: monthly(100) } })
  const { text } = await issue()
  for (let start = 0; start < 3; start++) {
    const store = await openSqliteStore(file, { shareLimits: false })
    const api = createPartnerApi({ store })
    const headers = { 'x-service-partner-key': text }
    const response = await api.fetch(
      new Request(`http://a.example/service/public/plans?partner=${PARTNER}`, { headers }),
    )
    // The first lease is of two, one of which the server returns. The second server is killed.
    t.match(response.headers.get('ratelimit'), new RegExp(`"month";r=${[99, 98, 96][start]};`))
    t.match(await readQuotaUse(operator, await partners.show(PARTNER), Date.now()), [{
      used: [2, 3, 4][start],
    }])
    if (start === 0) await api.close()
    store.close()
  }
})

t.test('events are sent once for a window, a quota and a level, whatever the number of servers', async (t) => {
  const file = newFile()
  const open = await openSqliteStore(file)
  const { partners } = await createPartner(open)
  await partners.update(PARTNER, { contact: 'dev@acme.example', tags: ['eu'] })
  const webhook: Webhook = {
    id: 'whk_1',
    url: 'https://a.example/',
    partner: PARTNER,
    state: 'active',
    createdAt: 0,
    events: ['quota.warning', 'quota.reached'],
    secrets: [],
    failingSince: undefined,
  }
  await open.webhooks.changeWebhook(webhook.id, 'webhook.created', { actor: 'test', at: 0 }, () => webhook)
  let failures = 1
  let lookUps = 0
  let ended = 0
  const store: Store = {
    ...open,
    quotas: {
      ...open.quotas,
      leaseQuota(request) {
        if (request.wanted > 0) ended++
        return open.quotas.leaseQuota(request)
      },
    },
    findPartner: (slug) => {
      lookUps++
      if (failures-- > 0) throw new Error('silent')
      return open.findPartner(slug)
    },
  }
  const options = { replicas: () => 2, elapsed: () => 0, localFallback: false }
  const servers = Array.from({ length: 2 }, () => ({
    limiter: createSharedLimiter(open.quotas, options),
    quotaCounted: createQuotaNotifier(store),
  }))
  const sent = async () =>
    (await open.webhooks.listDeliveries('whk_1', undefined, undefined, 100)).toReversed()
  const november = at('2026-11-24T00:00:00.250Z')
  const passes = async (count: number, quota: number, now: number) => {
    for (let n = 0; n < count; n++) {
      for (const { limiter, quotaCounted } of servers) {
        await request(limiter, monthly(quota), now, { quotaCounted })
      }
    }
  }
  await passes(4, 10, november)
  await until(() => failures === 0, 'the first attempt, which fails')
  await passes(1, 10, november + 10_000)
  await until(async () => (await sent()).length === 2, 'a request later')
  await passes(5, 10, november + 10_000)
  const [warning, reached] = await sent()
  const data = {
    slug: PARTNER,
    name: 'Acme',
    contact: 'dev@acme.example',
    tags: ['eu'],
    policy: 'month',
    quota: 10,
  }
  const end = { resets_at: '2026-12-01T00:00:00.000Z' }
  t.strictSame(JSON.parse(warning!.payload), {
    type: 'quota.warning',
    timestamp: '2026-11-24T00:00:10.250Z',
    data: { ...data, used: 9, ...end },
  })
  t.match(JSON.parse(reached!.payload), { type: 'quota.reached', data: { ...data, used: 10, ...end } })
  await passes(3, 12, november + 10_000)
  await until(async () => (await sent()).length === 4, 'both of the raised quota')
  await passes(6, 10, at('2026-12-01T00:00:00Z'))
  await until(async () => (await sent()).length === 6, 'both of the next month')
  t.strictSame((await sent()).map(({ type }) => type).toSorted(), [
    'quota.reached',
    'quota.reached',
    'quota.reached',
    'quota.warning',
    'quota.warning',
    'quota.warning',
  ])
  const database = new DatabaseSync(file)
  database.exec('DELETE FROM webhook_delivery')
  database.close()
  const before = ended
  await request(servers[0]!.limiter, monthly(10), november, { quotaCounted: createQuotaNotifier(store) })
  await until(() => ended > before, 'another attempt')
  t.strictSame(await sent(), [], 'none again after deliveries are deleted')
  t.ok(lookUps <= 13, `${lookUps} look-ups: one for each server and level, and the repeated one`)
})
