/** Sections 4 and 10, reports: what was done comes up in the summary. */
import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Heard, Tester } from '../contract/http/service.ts'
import { memory, sqliteFile } from '../contract/http/stores.ts'
import { canary, places, serveStore, withService } from '../support/partner-service.ts'

const dayMs = 86_400_000
const stores = { memory, sqlite: sqliteFile }
const summary = '/partner/reports/summary?partner=demo'
const activity = '/partner/reports/activity?partner=demo'

/** Asks at an instant. */
async function at<T>(now: number, ask: () => Promise<T>): Promise<T> {
  const real = Date.now
  Date.now = () => now
  try {
    return await ask()
  } finally {
    Date.now = real
  }
}

function day(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10)
}

function invalid(t: Tester, heard: Heard, parameters: readonly string[], what: string): void {
  t.strictSame([heard.status, heard.json.code, places(heard)], [400, 'invalid_parameter', parameters], what)
}

await t.test('periods', (t) =>
  withService(memory, async ({ ask }) => {
    const now = Date.UTC(2028, 2, 1)
    t.strictSame(
      (await at(now - 1, () => ask(summary))).json.data.period,
      { from: '2028-01-31', to: '2028-02-29' },
      'a day ends at midnight in UTC',
    )
    const told = (query: string) => at(now, () => ask(summary + query))
    const periods: readonly (readonly [query: string, from: string, to: string, days: number])[] = [
      ['', '2028-02-01', '2028-03-01', 30],
      ['&from=2028-03-01', '2028-03-01', '2028-03-01', 1],
      ['&from=2028-02-28', '2028-02-28', '2028-03-01', 3],
      ['&from=2027-03-02', '2027-03-02', '2028-03-01', 366],
      ['&from=2027-03-01', '2027-03-01', '2028-02-29', 366],
      ['&from=2000-01-01', '2000-01-01', '2000-12-31', 366],
      ['&to=2024-02-29', '2024-01-31', '2024-02-29', 30],
      ['&to=2028-03-02', '2028-02-02', '2028-03-02', 30],
      ['&to=0001-01-01', '0000-12-03', '0001-01-01', 30],
      ['&from=2023-03-01&to=2024-02-29', '2023-03-01', '2024-02-29', 366],
      ['&from=2030-01-01&to=2030-01-02', '2030-01-01', '2030-01-02', 2],
      ['&from=9999-01-01&to=9999-12-31', '9999-01-01', '9999-12-31', 365],
    ]
    for (const [query, from, to, days] of periods) {
      const { data } = (await told(query)).json
      t.strictSame(data.period, { from, to }, query)
      const dates = data.daily.map(({ date }: { date: string }) => date)
      const start = Date.parse(from)
      t.strictSame(dates, Array.from({ length: days }, (_, index) => day(start + index * dayMs)), 'every day')
    }
    const wrong: readonly (readonly [query: string, parameters: readonly string[]])[] = [
      ['&from=2028-03-02', ['from']],
      ['&from=2024-01-02&to=2024-01-01', ['from']],
      ['&from=2023-03-01&to=2024-03-01', ['from']],
      ['&from=0001-01-01&to=9999-12-31', ['from']],
      ['&from=x&to=y', ['from', 'to']],
      ['&from=2024-01-01&from=2024-01-01', ['from']],
      ['&limit=1&from=', ['from', 'limit']],
    ]
    for (const [query, parameters] of wrong) invalid(t, await told(query), parameters, query)
    const impossible = [
      '',
      '2023-02-29',
      '2023-02-30',
      '2023-04-31',
      '2023-13-01',
      '2023-00-10',
      '2023-01-00',
      '2023-01-32',
      '2023-1-1',
      '20230101',
      '2023-01-01T00:00:00Z',
      '%202023-01-01',
      '+2023-01-01',
      '2023-01-01%0A',
      '0000-01-01',
      '-000001-01-01',
      '12023-01-01',
      'today',
      '2023-W01-1',
      '%D9%A2%D9%A0%D9%A2%D9%A3-01-01',
    ]
    for (const date of impossible) {
      for (const name of ['from', 'to']) invalid(t, await told(`&${name}=${date}`), [name], `${name}=${date}`)
    }
  }))

for (const [name, open] of Object.entries(stores)) {
  await t.test(`${name}: the summary counts what live keys did in the period`, (t) =>
    withService(open, async (service) => {
      const { ask, store, world } = service
      const now = Date.UTC(2027, 5, 30, 12)
      const plans = ['starter', undefined, 'directory', 'starter', 'launch-package']
      const countries = ['DE', 'FR', undefined, 'AT', 'DE', 'DE', 'FR']
      const made = Array.from({ length: 90 }, (_, n) =>
        canary(service, {
          plan: plans[n % plans.length],
          country: countries[n % countries.length],
          createdAt: now - Math.floor(n * n / 90) * dayMs - (n % 3) * dayMs / 2,
        }))
      const uncounted = [
        canary(service, { createdAt: now, environment: 'test', keyId: world.keys['demo test'].id }),
        canary(service, { createdAt: now, partner: 'acme', keyId: world.keys['acme full'].id }),
      ]
      for (const one of [...made, ...uncounted]) await store.createSignup(one, undefined)
      const usage = Array.from({ length: 60 }, (_, n) => ({
        partner: 'demo',
        day: day(now - n * dayMs),
        endpoint: ['plans', 'sign-up', 'banner', 'countries', 'verify-key'][n % 5]!,
        requests: n % 2 === 0 ? 10 : n,
        errors: n % 4,
      }))
      await store.recordUsage([...usage, ...usage, { ...usage[0]!, partner: 'acme' }], 'a')

      for (
        const [from, to] of [['2027-06-01', '2027-06-30'], ['2027-05-01', '2027-05-20'], [
          '2026-07-01',
          '2027-06-30',
        ]]
      ) {
        const inPeriod = (date: string) => from! <= date && date <= to!
        const signups = made.filter(({ createdAt }) => inPeriod(day(createdAt)))
        const counts = usage.filter((count) => inPeriod(count.day))
        const of = <T>(rows: readonly T[], value: (row: T) => number) =>
          rows.reduce((sum, row) => sum + value(row), 0)
        const { data } = (await ask(`${summary}&from=${from}&to=${to}`)).json
        t.strictSame(Object.keys(data), ['period', 'signups', 'requests', 'daily'])
        t.equal(data.signups.total, signups.length)
        t.ok(signups.length > 5 && signups.length <= made.length)
        for (const by of ['plan', 'country'] as const) {
          const groups = Map.groupBy(signups, (one) => one[by] ?? null)
          const rows = [...groups].map(([value, members]) => ({ [by]: value, signups: members.length }))
          const sorted = rows.sort((a, b) =>
            Number(b.signups) - Number(a.signups) ||
            (a[by] === null ? 1 : b[by] === null ? -1 : String(a[by]) < String(b[by]) ? -1 : 1)
          )
          t.strictSame(data.signups[`by_${by}`], sorted, `by_${by}: the most first, then by name, none last`)
        }
        const requests = 2 * of(counts, (count) => count.requests)
        const errors = 2 * of(counts, (count) => count.errors)
        t.strictSame([data.requests.total, data.requests.errors], [requests, errors])
        const endpoints: readonly Record<string, number>[] = data.requests.by_endpoint
        t.equal(of(endpoints, (row) => row['requests']!), requests, 'they add up')
        t.equal(of(endpoints, (row) => row['errors']!), errors)
        const verify = counts.filter(({ endpoint }) => endpoint === 'verify-key')
        t.strictSame(endpoints.find((row) => String(row['path']).endsWith('verify-key')), {
          method: 'POST',
          path: '/service/developer/verify-key',
          requests: 2 * of(verify, (count) => count.requests),
          errors: 2 * of(verify, (count) => count.errors),
        })
        const most = endpoints.map((row) => row['requests']!)
        t.strictSame(most, most.toSorted((a, b) => b - a), 'the most first')
        const days = data.daily.map(({ date }: { date: string }) => ({
          date,
          signups: signups.filter(({ createdAt }) => day(createdAt) === date).length,
          requests: 2 * of(counts.filter((count) => count.day === date), (count) => count.requests),
          errors: 2 * of(counts.filter((count) => count.day === date), (count) => count.errors),
        }))
        t.strictSame(data.daily, days, 'day by day')
      }
      await store.recordUsage([{ ...usage[0]!, endpoint: 'of another release', day: '2020-01-01' }], 'b')
      const { requests } = (await ask(`${summary}&from=2020-01-01&to=2020-01-01`)).json.data
      t.strictSame([requests.total, requests.by_endpoint], [10, []], 'what is no endpoint here has no row')
    }))
}

await t.test('who may', (t) =>
  withService(memory, async ({ ask, world }) => {
    for (const path of ['/partner/reports/summary', '/partner/reports/activity']) {
      t.equal((await ask(`${path}?partner=demo`, { key: 'demo profiles' })).json.code, 'scope_missing')
      t.equal((await ask(`${path}?partner=acme`)).json.code, 'partner_mismatch')
      t.equal((await ask(`${path}?partner=demo`, { key: 'demo test' })).status, 200, 'a test key may read')
      t.equal(
        (await ask(`${path}?partner=demo`, { method: 'POST' })).headers.get('allow'),
        'GET, HEAD, OPTIONS',
      )
    }
    await world.partners.deactivate('demo', ['reporting'])
    t.equal((await ask(summary)).json.code, 'module_inactive')
  }))

await t.test('verify-key tells eleven endpoints', (t) =>
  withService(memory, async ({ post }) => {
    const { endpoints } = (await post('/developer/verify-key', { partner: 'demo' })).json.data
    const told = endpoints.map(({ method, path, scope, allowed }: Record<string, unknown>) =>
      [method, path, scope, allowed].join(' ')
    )
    t.equal(told.length, 11)
    for (
      const line of [
        'GET /service/partner/reports/summary read:partner-reports true',
        'GET /service/partner/reports/activity read:partner-reports true',
        'POST /service/partner/signups create:partner-signups true',
      ]
    ) t.ok(told.includes(line), line)
  }))

await t.test('a store that does not answer is 503', async (t) => {
  const store = createMemoryStore()
  const fail = (): never => {
    throw new Error('gone')
  }
  const failing: Store = { ...store, summarise: fail, listActivity: () => Promise.reject(new Error('gone')) }
  const service = await serveStore(failing)
  for (const path of [summary, activity]) {
    const heard = await service.ask(path)
    t.strictSame([heard.status, heard.json.code], [503, 'store_unavailable'])
  }
  await service.api.close()
})

await t.test('reports count for 400 days unless told otherwise, and then remove a few at a time', async (t) => {
  const now = Date.now()
  const kept = async (options: { keepUsageDays?: number }): Promise<string[]> => {
    const store = await openSqliteStore(':memory:')
    t.teardown(() => store.close())
    const service = await serveStore(store, options)
    const days = [0, 29, 31, 366, 400, 401].map((age) => day(now - age * dayMs))
    const count = { partner: 'demo', endpoint: 'plans', requests: 1, errors: 0 }
    await store.recordUsage(days.map((day) => ({ ...count, day })), 'before')
    await service.ask('/public/plans?partner=demo')
    await service.api.close()
    const { requestsByDay } = await store.summarise('demo', '2000-01-01', '9999-12-31')
    return days.filter((day) => requestsByDay.some((row) => row.day === day))
  }
  t.equal((await kept({})).length, 5, 'all but the day before the last 400')
  t.equal((await kept({ keepUsageDays: 30 })).length, 2)
  t.throws(() => createPartnerApi({ store: createMemoryStore() }, { keepUsageDays: 0 }), RangeError)
})
