import fc from 'fast-check'
import { utcDay } from '../../../core/lib/time.ts'
import type { SummaryCounts, UsageCount } from '../../../core/ports/reports.ts'
import type { Signup } from '../../../core/ports/signups.ts'
import type { Store } from '../../../core/ports/store.ts'
import { until } from '../../postgres/until.ts'
import { createKeys, DAY, reservation, signup, T0, usageCount } from './samples.ts'
import { type Check, checkProperty } from './suites.ts'

/** First and last milliseconds of days around the end of a year. */
const instants = [-2 * DAY, -1, 0, DAY - 1, DAY, 2 * DAY].map((distance) => T0 + distance)
const days = instants.map(utcDay)

const anySignup = fc.record({
  partner: fc.constantFrom('acme', 'globex'),
  environment: fc.constantFrom('live', 'live', 'live', 'test'),
  createdAt: fc.constantFrom(...instants),
  plan: fc.constantFrom(undefined, 'pro', 'free'),
  country: fc.constantFrom(undefined, 'DE', 'FR', 'JP'),
  /** The idempotency key; some signups repeat one. */
  key: fc.constantFrom(undefined, 'a', 'b'),
})

const anyCount: fc.Arbitrary<UsageCount> = fc.record({
  partner: fc.constantFrom('acme', 'globex'),
  keyId: fc.constantFrom('k', 'l', undefined),
  environment: fc.constantFrom('live', 'live', 'test'),
  day: fc.constantFrom(...days),
  endpoint: fc.constantFrom('profiles', 'plans'),
  requests: fc.integer({ min: 1, max: 5_000_000_000 }),
  errors: fc.integer({ min: 0, max: 3 }),
})

/** A naive implementation of the summary. */
function counted(
  signups: readonly Signup[],
  counts: readonly UsageCount[],
  partner: string,
  from: string,
  to: string,
): SummaryCounts {
  const mine = signups.filter((one) =>
    one.partner === partner && one.environment === 'live' && utcDay(one.createdAt) >= from &&
    utcDay(one.createdAt) <= to
  )
  const requests = counts.filter((one) =>
    one.partner === partner && one.environment === 'live' && one.day >= from && one.day <= to
  )
  const add = (rows: readonly UsageCount[]) => ({
    requests: rows.reduce((sum, row) => sum + row.requests, 0),
    errors: rows.reduce((sum, row) => sum + row.errors, 0),
  })
  const groups = <T, G>(rows: readonly T[], by: (row: T) => G) => [...Map.groupBy(rows, by)]
  return {
    signupsByPlan: groups(mine, ({ plan }) => plan).map(([plan, { length }]) => ({ plan, signups: length })),
    signupsByCountry: groups(mine, ({ country }) => country)
      .map(([country, { length }]) => ({ country, signups: length })),
    signupsByDay: groups(mine, ({ createdAt }) => utcDay(createdAt))
      .map(([day, { length }]) => ({ day, signups: length })),
    requestsByEndpoint: groups(requests, ({ endpoint }) => endpoint)
      .map(([endpoint, rows]) => ({ endpoint, ...add(rows) })),
    requestsByDay: groups(requests, ({ day }) => day).map(([day, rows]) => ({ day, ...add(rows) })),
  }
}

/** Sorts every list and drops rows with zero counts. */
function sorted(counts: SummaryCounts): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(counts).map(([name, rows]) => [
      name,
      rows.filter((row: object) => Object.values(row).some((value) => typeof value === 'number' && value > 0))
        .map((row: object) => JSON.stringify(Object.entries(row).sort())).sort(),
    ]),
  )
}

/** Counts of signups and requests by day. */
export async function summaryContract(check: Check, open: () => Promise<Store>): Promise<void> {
  await check('counts before the first day to keep are removed, and nothing else is', async (t, store) => {
    await createKeys(store, 'acme')
    const old = T0 - DAY
    const oldest = T0 - 400 * DAY
    const count = usageCount({ errors: 1 })
    for (const [index, createdAt] of [oldest, old, T0].entries()) {
      await store.createSignup(signup(`${index}`, { keyId: 'acme-live', createdAt, plan: 'pro' }), undefined)
      await store.recordUsage([{ ...count, day: utcDay(createdAt) }], `${index}`)
    }
    const daysOf = async () => {
      const { signupsByDay, requestsByDay, signupsByPlan } = await store.summarise(
        'acme',
        '2000-01-01',
        '2027-01-01',
      )
      const ofKey = await store.keyUsage([count.keyId!], '2000-01-01', '2027-01-01')
      return [signupsByDay, requestsByDay].map((rows) => rows.map(({ day }) => day).sort().join())
        .concat(`${signupsByPlan[0]?.signups}`, ofKey.map(({ day }) => day).join())
    }
    const all = [oldest, old, T0].map(utcDay).join()
    t.strictSame(await daysOf(), [all, all, '3', all], 'without a first day, nothing is removed')
    await store.recordUsage([{ ...count, day: utcDay(T0) }], 'next', utcDay(T0))
    const left = [utcDay(T0), utcDay(T0), '1', utcDay(T0)]
    await until(async () => (await daysOf()).join(' ') === left.join(' '), 'the old counts to be removed')
    t.equal((await store.listSignups('acme', undefined, 10)).length, 3, 'signups are not removed')
  })

  await check(
    'usage of keys counts live and test keys, those of a partner only live ones',
    async (t, store) => {
      await store.recordUsage([
        usageCount({ requests: 2, errors: 1 }),
        usageCount({ requests: 3 }),
        usageCount({ keyId: 'acme-test', environment: 'test', requests: 10, errors: 10 }),
        usageCount({ keyId: 'zz', endpoint: 'banner', requests: 4 }),
        usageCount({ keyId: undefined, requests: 100 }),
      ], 'a')
      await store.recordUsage([usageCount({ requests: 5 }), usageCount({ day: '2026-02-01' })], 'b')
      const plans = { day: '2026-01-31', endpoint: 'plans' }
      const january = [
        { keyId: 'acme-live', ...plans, requests: 10, errors: 1 },
        { keyId: 'acme-test', ...plans, requests: 10, errors: 10 },
        { keyId: 'zz', ...plans, endpoint: 'banner', requests: 4, errors: 0 },
      ]
      const february = { ...january[0]!, day: '2026-02-01', requests: 1, errors: 0 }
      const all = ['acme-live', 'acme-test', 'zz']
      t.strictSame(await store.keyUsage(all, '2026-01-31', '2026-01-31'), january)
      t.strictSame(await store.keyUsage(all, '2026-01-01', '2026-02-01'), [...january, february])
      t.strictSame(await store.keyUsage(['missing', 'acme-live'], '2026-01-01', '2026-12-31'), [
        january[0],
        february,
      ])
      for (const [day, row] of [['2026-01-31', january[0]], ['2026-02-01', february]] as const) {
        t.strictSame(await store.keyUsage(['acme-live'], day, day), [row])
      }
      t.strictSame(await store.keyUsage([], '2026-01-01', '2026-12-31'), [])
      const { requestsByDay } = await store.summarise('acme', '2026-01-31', '2026-01-31')
      t.strictSame(requestsByDay, [{ day: '2026-01-31', requests: 114, errors: 1 }])
    },
  )

  await check('days of partners come by slug, and whole', async (t, store) => {
    await createKeys(store, 'acme', 'globex', 'initech', 'idle')
    const at = (day: number, keyId: string, more = {}) =>
      signup(`${day}${keyId}`, { keyId, partner: keyId.split('-')[0]!, createdAt: T0 + day * DAY, ...more })
    await store.createSignup(at(0, 'initech-live', { plan: 'pro' }), undefined)
    await store.createSignup(at(1, 'initech-live', { country: 'DE' }), undefined)
    await store.createSignup(at(1, 'acme-test', { environment: 'test' }), undefined)
    await store.recordUsage([
      usageCount({ partner: 'initech', day: '2026-01-02', requests: 7, errors: 2 }),
      usageCount({ partner: 'initech', day: '2026-01-02', endpoint: 'banner', keyId: undefined }),
      usageCount({ partner: 'acme', day: '2026-01-01' }),
      usageCount({ partner: 'acme', day: '2026-01-05', requests: 9 }),
      usageCount({ partner: 'idle', day: '2026-01-02', environment: 'test' }),
      usageCount({ partner: 'globex', day: '2025-12-31' }),
      usageCount({ partner: 'globex', day: '2026-01-06' }),
    ], 'a')
    const none = undefined
    const first = '2026-01-01'
    const last = '2026-01-05'
    const row = { requests: 0, errors: 0, signups: 0 }
    const acme = [
      { partner: 'acme', day: first, ...row, requests: 1 },
      { partner: 'acme', day: last, ...row, requests: 9 },
    ]
    const initech = [
      { partner: 'initech', day: first, ...row, signups: 1 },
      { partner: 'initech', day: '2026-01-02', requests: 8, errors: 2, signups: 1 },
    ]
    t.strictSame(await store.summarisePartners(first, last, none, 10), [...acme, ...initech])
    t.strictSame(await store.summarisePartners(first, last, none, 1), acme, 'both days of the one partner')
    t.strictSame(await store.summarisePartners(first, last, 'acme', 1), initech, 'not one without counts')
    t.strictSame(await store.summarisePartners(first, last, 'initech', 10), [])
  })

  await check('a batch of counts is added once, and changes no revision', async (t, store) => {
    const before = await store.revision()
    const count = usageCount({ requests: 2, errors: 1 })
    const send = (requests: number, batch: string) => store.recordUsage([{ ...count, requests }], batch)
    await send(1, 'a')
    await send(1, 'a')
    await Promise.all(Array.from({ length: 20 }, () => send(10, 'b')))
    await Promise.all(Array.from({ length: 20 }, (_, index) => send(100, `c${index}`)))
    await send(1, 'a')
    await send(10, 'b')
    t.strictSame((await store.summarise('acme', '2026-01-31', '2026-01-31')).requestsByDay, [
      { day: '2026-01-31', requests: 2011, errors: 22 },
    ])
    t.strictSame(await store.revision(), before)
  })

  await check('a summary equals that of a naive count', async (t) => {
    const drawn = fc.tuple(
      fc.array(anySignup, { maxLength: 30 }),
      fc.array(anyCount, { maxLength: 12 }),
      fc.constantFrom(...days),
      fc.constantFrom(...days),
    )
    await checkProperty(t, open, drawn, async (store, [signups, counts, from, to]) => {
      await createKeys(store, 'acme', 'globex')
      const stored: Signup[] = []
      for (const [index, { key, ...more }] of signups.entries()) {
        const sent = signup(`${index}`, { ...more, keyId: `${more.partner}-${more.environment}` })
        const claimed = key === undefined ? undefined : reservation({ key, expiresAt: T0 + 9 * DAY })
        if ((await store.createSignup(sent, claimed)).outcome === 'created') stored.push(sent)
      }
      await store.recordUsage(counts.slice(0, 5), 'first')
      await store.recordUsage(counts.slice(5), 'second')
      for (const partner of ['acme', 'globex']) {
        const found = JSON.stringify(sorted(await store.summarise(partner, from, to)))
        const expected = JSON.stringify(sorted(counted(stored, counts, partner, from, to)))
        if (found !== expected) throw new Error(`found ${found} instead of ${expected}`)
        const days = (await store.summarisePartners(from, to, undefined, 9)).filter((row) =>
          row.partner === partner
        )
        const { signupsByDay, requestsByDay } = counted(stored, counts, partner, from, to)
        for (const [name, rows] of Object.entries({ signups: signupsByDay, requests: requestsByDay })) {
          const sum = (all: readonly object[]) =>
            all.reduce((sum, row) => sum + Number(row[name as keyof typeof row]), 0)
          if (sum(days) !== sum(rows)) throw new Error(`${sum(days)} ${name} instead of ${sum(rows)}`)
        }
      }
    })
  })
}
