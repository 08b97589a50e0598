/** Rate limits of one process, those that replicas share, and the RateLimit fields. */
import fc from 'fast-check'
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { consumeQuotas, createLocalLimiter, type Limiter } from '../../core/limits/limiter.ts'
import { DEFAULT_LIMITS, type Policies, policiesFor, type Policy } from '../../core/limits/policies.ts'
import { createSharedLimiter } from '../../core/limits/shared-limiter.ts'
import type { Environment, Key, LimitOverrides, Partner, PolicyName } from '../../core/model.ts'
import type { LeaseRequest, QuotaReturn, QuotaStore } from '../../core/ports/quotas.ts'
import { withKey } from '../contract/http/service.ts'
import { newFile } from '../support/cli-program.ts'
import { fillWorld } from '../support/world.ts'

const policy = (quota: number, windowSeconds = 60): Policy => ({
  name: 'key',
  quota,
  windowSeconds,
  field: `"key";q=${quota};w=${windowSeconds}`,
})

/** Counts a request of a key, by default without quotas of its partner. */
function consume(limiter: Limiter, policies: Policies, limits: readonly PolicyName[], id: string, at = 0) {
  const { key, partner } = factsOf(id)
  return consumeQuotas({ limiter, quotaCounted: () => {} }, { key, partner, policies }, { limits }, 0, at)
}

function factsOf(id: string, limits: LimitOverrides = {}, environment: Environment = 'live') {
  return { key: { id, environment, limits: {} } as Key, partner: { slug: 'acme', limits } as Partner }
}

t.test('Retry-After is the longest of several spent quotas, and a failing limiter rejects', async (t) => {
  const local = createLocalLimiter()
  const policies = policiesFor({
    ...DEFAULT_LIMITS,
    key: { quota: 2, windowSeconds: 30 },
    signup: { quota: 1, windowSeconds: 60 },
  })
  const pending: Limiter = { ...local, consume: (...request) => Promise.resolve(local.consume(...request)) }
  const failing: Limiter = {
    ...local,
    consume: (one, ...request) =>
      one.name === 'key' ? local.consume(one, ...request) : Promise.reject(new Error('silent')),
  }
  const names = ['key', 'signup'] as const
  for (const [subject, limiter] of Object.entries({ local, pending })) {
    const waits = []
    for (let n = 0; n < 3; n++) {
      waits.push((await consume(limiter, policies, names, subject))?.retryAfterSeconds)
    }
    t.strictSame(waits, [undefined, 60, 60], subject)
    t.equal((await consume(limiter, policies, ['key'], subject))?.retryAfterSeconds, 30)
  }
  await t.rejects(Promise.resolve(consume(failing, policies, names, 'failing')), { message: 'silent' })
})

t.test('exactly the quota passes in a window, whatever the timing of requests', (t) => {
  const schedule = fc.array(
    fc.record({
      wait: fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: 3_000, noNaN: true }),
        fc.constantFrom(999, 1_000, 5_000),
      ),
      subject: fc.constantFrom('a', 'b', 'c'),
      peek: fc.boolean(),
    }),
    { maxLength: 100, size: 'max' },
  )
  let longest = 0
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 5 }),
      schedule,
      (quota, windowSeconds, all) => {
        const one = policy(quota, windowSeconds)
        const limiter = createLocalLimiter()
        const windows = new Map<string, { end: number; leases: number }>()
        let now = 0
        for (const { wait, subject, peek } of all) {
          now += wait
          let window = windows.get(subject)
          if (peek) {
            const open = window !== undefined && now < window.end
            const remaining = open ? Math.max(0, quota - window!.leases) : quota
            const seen = limiter.peek(one, subject, now)
            if (seen.remaining !== remaining || seen.allowed !== remaining > 0) return false
          }
          if (window === undefined || now >= window.end) {
            windows.set(subject, window = { end: now + windowSeconds * 1_000, leases: 0 })
          }
          window.leases++
          const { allowed, remaining, resetSeconds } = limiter.consume(one, subject, now)
          if (
            allowed !== window.leases <= quota || remaining !== Math.max(0, quota - window.leases)
          ) return false
          // At most a second longer than the window, plus rounding errors.
          if (resetSeconds * 1_000 >= window.end - now + 1_000 + 1e-6 && resetSeconds > 1) return false
          // After that time and the rounding error, the full quota is available.
          const after = limiter.peek(one, subject, now + resetSeconds * 1_000 + 1e-6)
          if (after.remaining !== quota || resetSeconds < 1) return false
          longest = Math.max(longest, resetSeconds - windowSeconds)
        }
        return true
      },
    ),
    { numRuns: 500 },
  )
  // Instants have fractions: the end of a window minus its start may exceed its length by a rounding error.
  t.equal(longest, 0, 'no reset exceeds the window')
  t.end()
})

/** A quota store with one window per subject, and a clock that only `pass` advances. */
function createLeaseLedger(leastWindowSeconds = 1) {
  const windows = new Map<string, { openedAt: number; taken: number }>()
  let now = 0
  let silent = false
  const leases: LeaseRequest[] = []
  const returned: QuotaReturn[] = []
  const ledger: QuotaStore = {
    sharesLimits: true,
    leastWindowSeconds,
    async leaseQuota(request) {
      leases.push(request)
      await Promise.resolve()
      if (silent) throw new Error('silent')
      const length = request.windowSeconds * 1000
      let window = windows.get(request.subject)
      if (window === undefined || now >= window.openedAt + length) {
        window = { openedAt: now, taken: 0 }
        if (request.wanted > 0) windows.set(request.subject, window)
      }
      const granted = Math.max(0, Math.min(request.wanted, request.quota - window.taken))
      window.taken += granted
      return {
        granted,
        remaining: Math.max(0, request.quota - window.taken),
        resetMs: window.openedAt + length - now,
        term: window.openedAt + 1,
      }
    },
    returnQuotas(returns) {
      returned.push(...returns)
      if (silent) throw new Error('silent')
      for (const { subject, unused } of returns) windows.get(subject)!.taken -= unused
    },
  }
  return {
    leases,
    returns: returned,
    elapsed: () => now,
    pass: (ms: number) => void (now += ms),
    fallSilent: (is: boolean) => void (silent = is),
    replica: (replicas: number, standsAlone = false): Limiter =>
      createSharedLimiter(ledger, {
        replicas: () => replicas,
        elapsed: () => now,
        localFallback: standsAlone,
      }),
  }
}

await t.test('never more than the quota passes, and at least 98 % of it when requested', async (t) => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 700 }),
    fc.integer({ min: 1, max: 6 }),
    fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 40 })), { minLength: 1, maxLength: 60 }),
    async (quota, size, bursts) => {
      const ledger = createLeaseLedger()
      const replicas = Array.from({ length: size }, () => ledger.replica(size))
      let offered = 0
      let passed = 0
      for (const [which, count] of bursts) {
        const limiter = replicas[which % size]!
        offered += count
        // Some concurrently, some in sequence.
        const together = Array.from(
          { length: Math.ceil(count / 2) },
          () => limiter.consume(policy(quota), 'k', 0),
        )
        for (const { allowed } of await Promise.all(together)) if (allowed) passed++
        for (let n = together.length; n < count; n++) {
          if ((await limiter.consume(policy(quota), 'k', 0)).allowed) passed++
        }
      }
      const due = Math.min(offered, quota)
      if (passed > quota || passed < due - quota * 0.02) throw new Error(`${passed} of ${due} passed`)
    },
  )
  await fc.assert(property, { numRuns: 200 })
  t.ok(true, 'in 200 runs')
})

await t.test('a single replica counts exactly', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const states = []
  for (let n = 1; n <= 120; n++) states.push(await limiter.consume(policy(100), 'k', 0))
  const expected = states.map((_, n) => ({
    allowed: n < 100,
    remaining: Math.max(0, 99 - n),
    resetSeconds: 60,
  }))
  t.strictSame(states, expected)
  t.equal(ledger.leases.length, 50, 'each lease is for two')
})

await t.test('a spent quota is not leased again until its window ends', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(4)
  for (let n = 0; n < 5; n++) await limiter.consume(policy(5), 'k', 0)
  const leases = ledger.leases.length
  const resets = new Set<number>()
  for (let n = 0; n < 1000; n++) {
    const { allowed, resetSeconds } = await limiter.consume(policy(5), 'k', ledger.elapsed())
    resets.add(allowed ? 0 : resetSeconds)
    ledger.pass(59)
  }
  t.strictSame([...resets], Array.from({ length: 59 }, (_, passed) => 60 - passed))
  t.equal(ledger.leases.length, leases, 'in 59 seconds')
  ledger.pass(1_000)
  t.ok((await limiter.consume(policy(5), 'k', ledger.elapsed())).allowed)
  t.equal(ledger.leases.length, leases + 1)
})

await t.test('the reset counts down to the same end in every result', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const one = policy(3)
  for (
    const [elapsed, remaining, allowed] of [[0, 2, true], [20_000, 1, true], [40_000, 0, true], [
      50_000,
      0,
      false,
    ]] as const
  ) {
    ledger.pass(elapsed - ledger.elapsed())
    const resetSeconds = 60 - elapsed / 1_000
    t.strictSame(await limiter.consume(one, 'k', elapsed), { allowed, remaining, resetSeconds })
    const seen = { allowed: remaining > 0, remaining, resetSeconds }
    t.strictSame(limiter.peekLocal(one, 'k', elapsed), seen, 'recalled')
    t.strictSame(await limiter.peek(one, 'k', elapsed), seen, 'peeking shows the same')
  }
})

await t.test('requests during the last lease cause no further lease', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const spend = () => limiter.consume(policy(5), 'k', 0)
  const first = [1, 2, 3, 4, 5, 6].map(spend)
  await first[0]
  // The second lease, of the other five, is pending.
  const late = [1, 2, 3].map(spend)
  t.strictSame((await Promise.all([...first, ...late])).map(({ allowed }) => allowed), [
    ...Array(5).fill(true),
    ...Array(4).fill(false),
  ])
  t.equal(ledger.leases.length, 2)
})

await t.test('requests during a lease share the next one', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(4)
  const spent = await Promise.all(Array.from({ length: 64 }, () => limiter.consume(policy(600), 'k', 0)))
  t.ok(spent.every(({ allowed }) => allowed))
  t.strictSame(ledger.leases.map(({ wanted }) => wanted), [3, 61], 'two of the first lease remain')
  t.strictSame(spent.map(({ remaining }) => remaining).sort((a, b) => b - a)[63], 536)
})

await t.test('requests that the current lease covers cause no other lease', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const spend = (count: number) =>
    Promise.all(Array.from({ length: count }, () => limiter.consume(policy(600), 'k', 0)))
  await spend(3)
  t.strictSame(ledger.leases.map(({ wanted }) => wanted), [12], 'a larger lease would hold more than 2 %')
  t.notOk(limiter.consume(policy(600), 'k', 0) instanceof Promise, 'the response does not wait')
  await spend(8)
  await spend(12)
  t.strictSame(ledger.leases.map(({ wanted }) => wanted), [12, 12], 'the last of a lease needs no other')
})

await t.test('requests that wait while a window ends count in the next', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const spend = () => limiter.consume(policy(1), 'k', ledger.elapsed())
  const waiting = [spend(), spend()]
  // The store has counted the first request, and its response is on the way.
  await Promise.resolve()
  await Promise.resolve()
  ledger.pass(60_000)
  t.strictSame((await Promise.all(waiting)).map(({ allowed }) => allowed), [true, true])
  t.strictSame(await spend(), { allowed: false, remaining: 0, resetSeconds: 60 })
})

await t.test('no request is refused because of an earlier one during a pending lease', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(4)
  const spent: Promise<unknown>[] = []
  const spend = (): void => void spent.push(Promise.resolve(limiter.consume(policy(600), 'k', 0)))
  for (let n = 0; n < 600; n++) {
    spend()
    if (n % 7 === 0) await Promise.resolve()
  }
  t.ok((await Promise.all(spent) as { allowed: boolean }[]).every(({ allowed }) => allowed))
  t.notOk((await limiter.consume(policy(600), 'k', 0)).allowed)
})

await t.test('a changed policy applies immediately', async (t) => {
  for (const limiter of [createLocalLimiter(), createLeaseLedger().replica(1)]) {
    for (let n = 0; n < 3; n++) await limiter.consume(policy(2), 'k', 0)
    t.notOk((await limiter.consume(policy(2), 'k', 0)).allowed)
    t.ok((await limiter.consume(policy(3), 'k', 0)).allowed, 'a raised quota')
    t.notOk((await limiter.consume(policy(3), 'k', 0)).allowed)
    t.notOk((await limiter.consume(policy(1), 'k', 0)).allowed, 'a lowered quota')
    t.equal((await limiter.consume(policy(1, 30), 'k', 0)).resetSeconds, 30, 'a shorter window')
  }
})

await t.test('a lease under the previous policy is discarded', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1)
  const before = [limiter.consume(policy(1), 'k', 0), limiter.consume(policy(1), 'k', 0)]
  const after = limiter.consume(policy(3), 'k', 0)
  t.strictSame((await Promise.all(before)).map(({ allowed }) => allowed), [true, false])
  t.ok((await after).allowed)
  t.ok((await limiter.consume(policy(3), 'k', 0)).allowed, 'the new policy has its own window')
  t.notOk((await limiter.consume(policy(3), 'k', 0)).allowed)
})

await t.test('peeking consumes nothing and includes other replicas', async (t) => {
  const ledger = createLeaseLedger()
  const here = ledger.replica(2)
  const there = ledger.replica(2)
  t.equal((await here.peek(policy(600), 'k', 0)).remaining, 600)
  for (let n = 0; n < 100; n++) await there.consume(policy(600), 'k', 0)
  t.ok(Math.abs((await here.peek(policy(600), 'k', 0)).remaining - 500) <= 12, 'except for what they hold')
  const full = { allowed: true, remaining: 600, resetSeconds: 60 }
  t.strictSame(here.peekLocal(policy(600), 'k', 0), full, 'peekLocal counts this replica only')
  t.strictSame(here.peekLocal(policy(600), 'unknown', 0), full)
  t.strictSame(there.peekLocal(policy(600), 'k', 60_000), full, 'after the end of the window')
  t.equal((await there.peek(policy(600), 'k', 0)).remaining, 500)
  const local = there.peekLocal(policy(600), 'k', 0)
  t.equal(local.remaining, 500)
  ledger.fallSilent(true)
  t.strictSame(await there.peek(policy(600), 'k', 0), local, 'without the quota store')
})

await t.test('a local share is not returned, and nothing twice', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(1, true)
  await limiter.consume(policy(600), 'k', 0)
  ledger.fallSilent(true)
  await limiter.consume(policy(600), 'other', 0)
  for (const silent of [false, true, false]) {
    ledger.fallSilent(silent)
    await limiter.close()
  }
  t.strictSame(ledger.returns, [{ policy: 'key', subject: 'k', term: 1, used: 0, unused: 11 }])
})

await t.test('uses are reported once, whatever happens during the lease that reports them', async (t) => {
  const cases = [[20, 1_000, [[0, 19, 0], [1]]], [0, 2_000, [[0, 19, 0], [0]]]] as const
  for (const [ms, quota, expected] of cases) {
    const ledger = createLeaseLedger()
    const limiter = ledger.replica(1)
    const use = (times: number, quota = 1_000) =>
      Promise.all(Array.from({ length: times }, () => limiter.consume(policy(quota), 'k', ledger.elapsed())))
    await use(20)
    ledger.pass(59_990)
    const reporting = use(1)
    ledger.pass(ms)
    await Promise.all([reporting, use(1, quota)])
    await use(1, 2_000)
    const reported = ledger.leases.map(({ report }) => report?.used)
    t.strictSame([reported, ledger.returns.map(({ used }) => used)], expected)
  }
})

await t.test('on SQLite, a restart continues windows of an hour, with what was leased and not used', async (t) => {
  const file = newFile()
  const operator = await openSqliteStore(file)
  const world = await fillWorld(operator)
  await operator.close()
  for (const [windowSeconds, expected] of [[3_599, [999, 999]], [3_600, [999, 998]]] as const) {
    const remaining = []
    for (let start = 0; start < 2; start++) {
      const store = await openSqliteStore(file)
      const api = createPartnerApi({ store }, { limits: { key: { quota: 1_000, windowSeconds } } })
      const headers = withKey(world.keys['demo full'])
      const { headers: sent } = await api.fetch(
        new Request('http://a.example/service/public/plans?partner=demo', { headers }),
      )
      remaining.push(Number(/r=(\d+)/.exec(sent.get('ratelimit') ?? '')?.[1]))
      await api.close()
      await store.close()
    }
    t.strictSame(remaining, expected, `${windowSeconds} s`)
  }
})

await t.test('windows shorter than those of the quota store are counted locally', async (t) => {
  const ledger = createLeaseLedger(3_600)
  const here = ledger.replica(1)
  const there = ledger.replica(1)
  for (const limiter of [here, there]) t.ok((await limiter.consume(policy(1), 'k', 0)).allowed)
  t.notOk((await here.peek(policy(1), 'k', 0)).allowed)
  t.notOk(here.peekLocal(policy(1), 'k', 0).allowed)
  t.ok((await here.consume(policy(1, 3_600), 'k', 0)).allowed)
  t.notOk((await there.consume(policy(1, 3_600), 'k', 0)).allowed)
})

await t.test('without the quota store nothing passes, unless a local fallback is configured', async (t) => {
  const ledger = createLeaseLedger()
  const limiter = ledger.replica(4)
  ledger.fallSilent(true)
  await t.rejects(Promise.resolve(limiter.consume(policy(600), 'k', 0)), { message: 'silent' })
  ledger.fallSilent(false)
  t.ok((await limiter.consume(policy(600), 'k', 0)).allowed, 'the next request leases again')

  const alone = ledger.replica(4, true)
  ledger.fallSilent(true)
  const states = []
  for (let n = 0; n < 600; n++) states.push(await alone.consume(policy(600), 'other', 0))
  t.equal(states.filter(({ allowed }) => allowed).length, 150, 'the local share of the quota')
  t.ok(states.every(({ resetSeconds }) => resetSeconds === 60))

  const short = createLeaseLedger(30)
  const single = short.replica(1)
  const passed = async () => (await single.consume(policy(600), 'k', short.elapsed())).allowed
  t.ok(await passed(), 'the first lease')
  short.fallSilent(true)
  short.pass(1_000)
  let count = 1
  while (await passed()) count++
  t.equal(count, 600, 'what the quota store had left')
  short.pass(59_000)
  t.ok(await passed(), 'until the window ends')
})
