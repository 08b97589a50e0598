import fc from 'fast-check'
import { storedSeconds } from '../../../core/limits/partner-quotas.ts'
import { createPolicy } from '../../../core/limits/policies.ts'
import { createSharedLimiter } from '../../../core/limits/shared-limiter.ts'
import type { LeaseRequest, QuotaLease } from '../../../core/ports/quotas.ts'
import type { Store } from '../../../core/ports/store.ts'
import { until } from '../../postgres/until.ts'
import type { SharedCheck } from './suites.ts'

/** What is leased is used at once, unless `waiting` says otherwise. */
function leaseRequest({ wanted = 1, ...more }: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    policy: 'key',
    subject: 'Zt81Zt81Zt81',
    quota: 10,
    windowSeconds: 3600,
    wanted,
    waiting: wanted,
    ...more,
  }
}

const lease = async (store: Store, more: Partial<LeaseRequest> = {}): Promise<QuotaLease> =>
  await store.quotas.leaseQuota(leaseRequest(more))

/** Requests granted and remaining. */
async function counted(store: Store, more: Partial<LeaseRequest> = {}): Promise<[number, number]> {
  const { granted, remaining } = await lease(store, more)
  return [granted, remaining]
}

/** Quotas that replicas share. */
export async function quotasContract(check: SharedCheck): Promise<void> {
  await check('a lease of nothing opens no window', async (t, open) => {
    const store = await open()
    const untouched = { granted: 0, remaining: 10, resetMs: 3_600_000, term: 0 }
    t.strictSame(await lease(store, { wanted: 0 }), untouched)
    t.strictSame(await lease(store, { wanted: 0 }), untouched)
  })

  await check('each replica is granted what it requests, up to what remains', async (t, open) => {
    const a = await open()
    const b = await open()
    const first = await lease(a, { wanted: 4 })
    t.strictSame(first, { ...first, granted: 4, remaining: 6 })
    t.ok(first.resetMs > 3_590_000 && first.resetMs <= 3_600_000, `${first.resetMs} ms`)
    t.strictSame(await counted(b, { wanted: 0 }), [0, 6])
    const second = await lease(b, { wanted: 5 })
    t.strictSame(second, { ...second, granted: 5, remaining: 1 })
    t.ok(second.resetMs <= first.resetMs, 'the lease is of the same window')
    t.strictSame(await counted(a, { wanted: 5 }), [1, 0])
    t.strictSame(await counted(b), [0, 0])
    t.strictSame(await counted(a, { wanted: 0 }), [0, 0])
    t.strictSame(await counted(a, { subject: 'more', wanted: 99 }), [10, 0], 'all at once')
  })

  await check(
    'few replicas hold more than they want, and all together no more than the most',
    async (t, open) => {
      const store = await open()
      const granted = async (more: Partial<LeaseRequest>) =>
        (await lease(store, { quota: 1_000, mostHeld: 20, waiting: 1, ...more })).granted
      t.equal(await granted({}), 10, 'half of what none holds')
      t.equal(await granted({}), 5, 'half of the rest, of which the first uses one at once')
      t.equal(await granted({ wanted: 12 }), 7, 'no more than the rest')
      t.equal(await granted({}), 1)
      t.equal(await granted({ wanted: 4, waiting: 4 }), 4, 'what waits is used at once')
      const { term } = await lease(store, { quota: 1_000, wanted: 0 })
      t.equal(await granted({ report: { term, used: 9 } }), 5, 'half of what is used and free again')
      t.equal(await granted({ wanted: 30, mostHeld: 0 }), 30, 'without a bound')
      t.strictSame(await counted(store, { quota: 1_000, wanted: 0 }), [0, 938])
    },
  )

  await check('each policy has a window for each subject', async (t, open) => {
    const store = await open()
    t.strictSame(await counted(store, { wanted: 10 }), [10, 0])
    t.strictSame(await counted(store, { policy: 'signup' }), [1, 9])
    t.strictSame(await counted(store, { policy: 'authfail', subject: '2001:db8::1' }), [1, 9])
    t.strictSame(await counted(store, { policy: 'authfail', subject: '192.0.2.1' }), [1, 9])
    t.strictSame(await counted(store), [0, 0])
  })

  await check('a changed quota applies to the open window', async (t, open) => {
    const store = await open()
    await lease(store, { wanted: 6 })
    t.strictSame(await counted(store, { quota: 4 }), [0, 0], 'lowered below what was used')
    t.strictSame(await counted(store, { quota: 4, wanted: 0 }), [0, 0])
    t.strictSame(await counted(store, { quota: 8, wanted: 5 }), [2, 0], 'raised again')
    t.strictSame(await counted(store, { quota: 20 }), [1, 11])
  })

  await check('under a changed quota, leases count when their use is reported', async (t, open) => {
    const store = await open()
    const { term } = await lease(store, { wanted: 9, waiting: 0 })
    t.strictSame(await counted(store, { quota: 4, wanted: 0 }), [0, 4])
    t.strictSame(
      await counted(store, { quota: 4, waiting: 0, report: { term, used: 2 } }),
      [1, 1],
      'by the first',
    )
    t.strictSame(await counted(store, { quota: 4, report: { term, used: 1 } }), [0, 0], 'and by others')
    t.strictSame(await counted(store, { quota: 20, wanted: 0 }), [0, 17], 'the last lease was not used')
  })

  await check('what is returned is available again, and only in its window', async (t, open) => {
    const store = await open()
    const key = { policy: 'key', subject: 'k' } as const
    const other = { policy: 'signup', subject: 's' } as const
    const { term } = await lease(store, { ...key, wanted: 10, waiting: 0 })
    const { term: otherTerm } = await lease(store, { ...other, wanted: 5, waiting: 0 })
    await store.quotas.returnQuotas([
      { ...key, term, used: 2, unused: 7 },
      { ...other, term: otherTerm, used: 5, unused: 0 },
      { ...key, subject: 'unknown', term, used: 0, unused: 5 },
    ])
    t.strictSame(await counted(store, { ...key, wanted: 0 }), [0, 7])
    t.strictSame(await counted(store, { ...key, quota: 9, wanted: 0 }), [0, 7], 'one is still out')
    t.strictSame(await counted(store, { ...other, quota: 9, wanted: 0 }), [0, 4])
    await store.quotas.returnQuotas([{ ...other, term: 0, used: 3, unused: 3 }])
    t.strictSame(await counted(store, { ...other, wanted: 0 }), [0, 5], 'a lease of an earlier window')
  })

  for (const name of ['key', 'month'] as const) {
    await check(`whatever happens to replicas and limits, the quota passes: ${name}`, (t, open) => {
      return quotaPasses(t, open, name)
    })
  }

  await check(
    'a changed window length applies from the start of the open window',
    async (t, open) => {
      const store = await open()
      await lease(store, { wanted: 3 })
      for (const [windowSeconds, wanted] of [[60, 0], [60, 1], [7200, 0], [7200, 1], [3600, 1]] as const) {
        const { remaining, resetMs } = await lease(store, { windowSeconds, wanted })
        t.ok(remaining >= 4 && remaining <= 7, `${remaining} remain in the open window`)
        const left = windowSeconds * 1000 - resetMs
        t.ok(left >= 0 && left < 10_000, `${resetMs} ms of ${windowSeconds} s`)
      }
      t.strictSame(await counted(store), [1, 3])
    },
  )

  await check('a lease after the end of a window opens a new one', async (t, open) => {
    const a = await open()
    const b = await open()
    const second = { windowSeconds: 1, subject: 'second' }
    await lease(a, { subject: 'hour', wanted: 10 })
    await lease(a, { ...second, wanted: 10 })
    await until(
      async () => (await lease(b, { ...second, wanted: 0 })).remaining === 10,
      'the window of one second to end',
    )
    t.strictSame(await lease(b, { ...second, wanted: 0 }), {
      granted: 0,
      remaining: 10,
      resetMs: 1000,
      term: 0,
    })
    t.strictSame(await counted(b, { ...second, wanted: 4 }), [4, 6])
    t.strictSame(await counted(a, { ...second, windowSeconds: 3600, wanted: 4 }), [4, 2])
    t.strictSame(await counted(a, { subject: 'hour' }), [0, 0], 'another window stays open')
    t.strictSame(await counted(b, { subject: 'hour', windowSeconds: 1 }), [1, 9], 'until it is shortened')
  })

  await check(
    'a service with shorter windows neither ends longer ones nor counts in them',
    async (t, open) => {
      const { quotas } = await open()
      const now = () => performance.now()
      const server = (windowSeconds: number) => {
        const limit = { quota: 4, windowSeconds }
        const options = { replicas: () => 1, elapsed: now, localFallback: false, limits: { key: limit } }
        const limiter = createSharedLimiter(quotas, options)
        const policy = createPolicy('key', limit)
        return {
          takes: async () => (await limiter.consume(policy, 'k', now())).allowed,
          left: async () => (await limiter.peek(policy, 'k', now())).remaining,
        }
      }
      const hour = server(3600)
      const second = server(1)
      for (let count = 0; count < 4; count++) t.ok(await hour.takes(), 'within the quota')
      t.ok(await second.takes(), 'in windows of its own')
      await until(async () => await second.left() === 4, 'the window of one second to end')
      t.ok(await second.takes(), 'in the next one')
      t.equal(await server(3600).takes(), false, 'another server with the longer windows')
    },
  )

  await check('concurrent replicas are granted exactly the quota', async (t, open) => {
    const stores = await Promise.all(Array.from({ length: 8 }, open))
    for (let round = 0; round < 5; round++) {
      const leases = await Promise.all(
        Array.from(
          { length: 400 },
          (_, index) =>
            lease(stores[index % 8]!, { subject: `r${round}`, quota: 600, wanted: 1 + index % 7 }),
        ),
      )
      t.equal(leases.reduce((sum, { granted }) => sum + granted, 0), 600)
      t.equal(Math.min(...leases.map(({ granted }) => granted)), 0)
      t.equal(leases.filter(({ remaining }) => remaining < 0 || remaining > 599).length, 0)
    }
  })
}

/**
 * Whatever replicas do, the quota passes. The count of a month is never less than what passed; that of a key may be, by
 * what replicas had not reported when its limit changed.
 */
async function quotaPasses(
  t: Parameters<Parameters<SharedCheck>[1]>[0],
  open: () => Promise<Store>,
  name: 'key' | 'month',
): Promise<void> {
  const { quotas } = await open()
  const size = 4
  const share = (quota: number): number => Math.floor(quota * 0.02 / size)
  const { numRuns = 60 } = fc.readConfigureGlobal()
  let run = 0
  const step = fc.record({
    replica: fc.nat(size - 1),
    count: fc.integer({ min: 1, max: 90 }),
    then: fc.constantFrom('goes on', 'goes on', 'drains', 'crashes'),
    quota: fc.option(fc.integer({ min: 1, max: 1_000 }), { freq: 6 }),
  })
  const start = () =>
    createSharedLimiter(quotas, { replicas: () => size, elapsed: () => 0, localFallback: false })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 1_000 }),
      fc.array(step, { minLength: 1, maxLength: 40 }),
      async (first, steps) => {
        const subject = `run ${run++}`
        const replicas = Array.from({ length: size }, start)
        let quota = first
        let passed = 0
        let most = first
        let offered = 0
        let lost = 0
        let unreported = 0
        let held = size * share(first)
        for (const { replica, count, then, quota: changed } of steps) {
          if (changed !== null && changed !== quota) {
            if (name === 'key') unreported += size * share(quota)
            quota = changed
            most = Math.max(passed, quota)
            offered = passed
            if (name === 'key') lost = 0
            else held = Math.max(held, size * share(quota))
          }
          const policy = { name, quota, windowSeconds: 3600, field: '' } as const
          const consume = () => replicas[replica]!.consume(policy, subject, 0)
          const together = await Promise.all(Array.from({ length: count >> 1 }, consume))
          passed += together.filter(({ allowed }) => allowed).length
          for (let n = count >> 1; n < count; n++) if ((await consume()).allowed) passed++
          offered += count
          const least = Math.min(offered, quota) - (name === 'key' ? size * share(quota) : held) - lost
          const windowSeconds = storedSeconds(policy)
          const state = await quotas.leaseQuota({
            policy: name,
            subject,
            quota: 100_000,
            windowSeconds,
            wanted: 0,
          })
          if (name === 'month' && 100_000 - state.remaining < passed) {
            throw new Error(`${passed} passed, and ${100_000 - state.remaining} are counted`)
          }
          if (passed > most + unreported || passed < least) {
            throw new Error(`${passed} passed, of ${least} to ${most} + ${unreported}`)
          }
          if (then === 'goes on') continue
          if (then === 'drains') await replicas[replica]!.close()
          else lost += name === 'key' ? share(quota) : held / size
          replicas[replica] = start()
        }
      },
    ),
    { numRuns },
  )
  t.ok(run >= numRuns, `${run} runs`)
}
