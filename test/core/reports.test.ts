/** Sections 4 and 10, reports: cases beyond the contract suites. */
import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { daysIn, isCalendarDay, resolvePeriod } from '../../core/reports/period.ts'
import type { TestResponse } from '../contract/http/service.ts'
import { memory } from '../contract/http/stores.ts'
import { usageCount } from '../contract/store/samples.ts'
import { canary, invalidFields, serveStore, withService } from '../support/partner-service.ts'

const dayMs = 86_400_000
const summary = '/partner/reports/summary?partner=demo'
const activity = '/partner/reports/activity?partner=demo'

const day = (instant: number): string => new Date(instant).toISOString().slice(0, 10)

t.test('a period has 1 to 366 days, 30 by default', (t) => {
  const now = Date.UTC(2028, 2, 1)
  type Bounds = readonly [from: string | undefined, to: string | undefined]
  const periods: readonly (readonly [...Bounds, from: string, to: string, days: number])[] = [
    [undefined, undefined, '2028-02-01', '2028-03-01', 30],
    ['2028-03-01', undefined, '2028-03-01', '2028-03-01', 1],
    ['2028-02-28', undefined, '2028-02-28', '2028-03-01', 3],
    ['2027-03-02', undefined, '2027-03-02', '2028-03-01', 366],
    ['2027-03-01', undefined, '2027-03-01', '2028-02-29', 366],
    ['2000-01-01', undefined, '2000-01-01', '2000-12-31', 366],
    [undefined, '2024-02-29', '2024-01-31', '2024-02-29', 30],
    [undefined, '2028-03-02', '2028-02-02', '2028-03-02', 30],
    [undefined, '0001-01-01', '0000-12-03', '0001-01-01', 30],
    ['2023-03-01', '2024-02-29', '2023-03-01', '2024-02-29', 366],
    ['2030-01-01', '2030-01-02', '2030-01-01', '2030-01-02', 2],
    ['9999-01-01', '9999-12-31', '9999-01-01', '9999-12-31', 365],
  ]
  for (const [from, to, start, end, days] of periods) {
    t.strictSame(resolvePeriod(from, to, now), { from: start, to: end })
    const every = Array.from({ length: days }, (_, index) => day(Date.parse(start) + index * dayMs))
    t.strictSame(daysIn({ from: start, to: end }), every)
  }
  t.strictSame(resolvePeriod(undefined, undefined, now - 1), { from: '2028-01-31', to: '2028-02-29' })
  const refused: readonly Bounds[] = [
    ['2028-03-02', undefined],
    ['2024-01-02', '2024-01-01'],
    ['2023-03-01', '2024-03-01'],
    ['0001-01-01', '9999-12-31'],
  ]
  for (const [from, to] of refused) t.type(resolvePeriod(from, to, now), 'string', `${from} to ${to}`)
  const impossible = [
    ...['', '2023-02-29', '2023-02-30', '2023-04-31', '2023-13-01', '2023-00-10', '2023-01-00', '2023-01-32'],
    ...['2023-1-1', '20230101', '2023-01-01T00:00:00Z', ' 2023-01-01', '+2023-01-01', '2023-01-01\n'],
    ...['0000-01-01', '-000001-01-01', '12023-01-01', 'today', '2023-W01-1', '٢٠٢٣-01-01'],
  ]
  t.strictSame(impossible.filter(isCalendarDay), [])
  t.end()
})

t.test('the summary counts requests and signups of live keys in the period', (t) =>
  withService(memory, async (service) => {
    const { request, store, world } = service
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
    const usage = Array.from({ length: 60 }, (_, n) =>
      usageCount({
        partner: 'demo',
        day: day(now - n * dayMs),
        endpoint: ['plans', 'sign-up', 'banner', 'countries', 'verify-key'][n % 5]!,
        requests: n % 2 === 0 ? 10 : n,
        errors: n % 4,
      }))
    await store.recordUsage([...usage, { ...usage[0]!, partner: 'acme' }], 'a')

    const periods = [['2027-06-01', '2027-06-30'], ['2027-05-01', '2027-05-20'], ['2026-07-01', '2027-06-30']]
    for (const [from, to] of periods) {
      const inPeriod = (date: string) => from! <= date && date <= to!
      const signups = made.filter(({ createdAt }) => inPeriod(day(createdAt)))
      const counts = usage.filter((count) => inPeriod(count.day))
      const add = (rows: readonly { readonly requests: number; readonly errors: number }[]) => ({
        requests: rows.reduce((sum, row) => sum + row.requests, 0),
        errors: rows.reduce((sum, row) => sum + row.errors, 0),
      })
      const { data } = (await request(`${summary}&from=${from}&to=${to}`)).json
      t.equal(data.signups.total, signups.length)
      t.ok(signups.length > 5 && signups.length <= made.length)
      for (const by of ['plan', 'country'] as const) {
        const groups = Map.groupBy(signups, (one) => one[by] ?? null)
        const rows = [...groups].map(([value, { length }]) => ({ [by]: value, signups: length }))
        const sorted = rows.sort((a, b) =>
          Number(b.signups) - Number(a.signups) ||
          (a[by] === null ? 1 : b[by] === null ? -1 : String(a[by]) < String(b[by]) ? -1 : 1)
        )
        t.strictSame(
          data.signups[`by_${by}`],
          sorted,
          `by_${by}: highest count first, then by name, null last`,
        )
      }
      const { requests, errors } = add(counts)
      t.strictSame([data.requests.total, data.requests.errors], [requests, errors])
      const endpoints: { path: string; requests: number; errors: number }[] = data.requests.by_endpoint
      t.strictSame(add(endpoints), { requests, errors }, 'the endpoints add up to the totals')
      t.strictSame(endpoints, endpoints.toSorted((a, b) => b.requests - a.requests), 'highest count first')
      t.strictSame(endpoints.find(({ path }) => path.endsWith('verify-key')), {
        method: 'POST',
        path: '/service/developer/verify-key',
        ...add(counts.filter(({ endpoint }) => endpoint === 'verify-key')),
      })
      const days = daysIn({ from: from!, to: to! }).map((date) => ({
        date,
        signups: signups.filter(({ createdAt }) => day(createdAt) === date).length,
        ...add(counts.filter((count) => count.day === date)),
      }))
      t.strictSame(data.daily, days, 'one row per day')
    }
    await store.recordUsage([{ ...usage[0]!, endpoint: 'of another release', day: '2020-01-01' }], 'b')
    const { requests } = (await request(`${summary}&from=2020-01-01&to=2020-01-01`)).json.data
    t.strictSame([requests.total, requests.by_endpoint], [10, []], 'an unknown endpoint has no row')
  }))

t.test('pages of the activity are full while signups arrive, and name no person', (t) =>
  withService(memory, async (service) => {
    const { request, store } = service
    for (let n = 0; n < 30; n++) await store.createSignup(canary(service, { profile: 'bare' }), undefined)
    const { json: { data: rows } } = await request(`${activity}&limit=100`)
    const known = new Set(rows.map(({ id }: { id: string }) => id))
    for (const query of ['', '&type=key.issued&type=signup.created', '&type=signup.created']) {
      const found: { readonly id: string; readonly type: string }[] = []
      let everything = ''
      let next: string | undefined = `${activity}&limit=3${query}`
      while (next !== undefined) {
        const { json, headers, text }: TestResponse = await request(next)
        found.push(...json.data)
        everything += [...headers].join('\n') + text
        const { limit, has_more: more, next_cursor: cursor } = json.page
        t.strictSame([limit, more, json.data.length === 3 || !more], [3, cursor !== null, true])
        const link: string | undefined = headers.get('link')
        t.equal(link === undefined, !more)
        next = link && `/partner/reports/activity${/^<(\?.*)>; rel="next"$/.exec(link)?.[1]}`
        await store.createSignup(canary(service, { createdAt: Date.now() + 5 }), undefined)
      }
      const wanted = rows.filter(({ type }: { type: string }) => query === '' || query.includes(type))
      t.strictSame(found.filter(({ id }) => known.has(id)), wanted, query)
      t.notMatch(everything, /canary|canaria|nominata|203\.0\.113|tester/i)
    }
  }))

t.test('a cursor of the activity is valid for its partner and types only', (t) =>
  withService(memory, async ({ request }) => {
    const first = await request(`${activity}&limit=1&type=key.issued`)
    const cursor = encodeURIComponent(first.json.page.next_cursor)
    const use = async (query: string, key?: 'acme full') =>
      (await request(`/partner/reports/activity?${query}&cursor=${cursor}`, key && { key })).json.code
    t.equal(await use('partner=demo&type=key.issued&limit=7'), undefined, 'with any limit')
    t.equal(await use('partner=demo&type=key.issued&type=key.issued'), undefined, 'with the same types')
    for (const query of ['', '&type=key.revoked', '&type=key.issued&type=key.revoked']) {
      t.equal(await use(`partner=demo${query}`), 'invalid_cursor', query)
    }
    t.equal(await use('partner=acme&type=key.issued', 'acme full'), 'invalid_cursor')
    const profiles = await request('/public/profiles?partner=demo&limit=1')
    const foreign = encodeURIComponent(profiles.json.page.next_cursor)
    for (const altered of [foreign, cursor.slice(1), `${cursor}A`, 'x', '', '.'.repeat(40)]) {
      t.equal((await request(`${activity}&type=key.issued&cursor=${altered}`)).status, 400, altered)
    }
  }))

t.test('invalid parameters of reports are refused', (t) =>
  withService(memory, async ({ request }) => {
    t.equal((await request(activity)).json.page.limit, 20)
    const many = '&type=key.issued'.repeat(20)
    t.equal((await request(activity + many)).status, 200)
    const wrong: readonly (readonly [target: string, parameters: readonly string[]])[] = [
      ...['0', '101', '-1', '1.5', '', 'x', '1e1'].map((limit) =>
        [`${activity}&limit=${limit}`, ['limit']] as const
      ),
      ...['', 'signup', 'key.*', 'KEY.ISSUED', 'constructor'].map((type) =>
        [`${activity}&type=${type}`, ['type']] as const
      ),
      [`${activity}${many}&type=key.issued`, ['type']],
      [`${activity}&from=2024-01-01&limit=0`, ['from', 'limit']],
      [`${summary}&from=x&to=y`, ['from', 'to']],
      [`${summary}&limit=1&from=`, ['from', 'limit']],
    ]
    for (const [target, parameters] of wrong) {
      const response = await request(target)
      t.strictSame(
        [response.status, response.json.code, invalidFields(response)],
        [400, 'invalid_parameter', parameters],
        target,
      )
    }
  }))

t.test('an unchanged activity gets 304', (t) =>
  withService(memory, async ({ request, post }) => {
    const path = '/partner/reports/activity?partner=acme'
    const key = 'acme full'
    const etag = (await request(path, { key })).headers.get('etag')!
    const again = () => request(path, { key, headers: { 'if-none-match': etag } })
    t.equal((await again()).status, 304)
    await post('/partner/signups', { partner: 'acme', email: 'a@b.example', name: 'A' }, { key })
    t.equal((await again()).status, 200)
  }))

t.test('a failing store causes 503', async (t) => {
  const fail = (): never => {
    throw new Error('gone')
  }
  const store = createMemoryStore()
  const service = await serveStore({
    ...store,
    summarise: fail,
    listActivity: () => Promise.reject(new Error('gone')),
  })
  for (const path of [summary, activity]) {
    const response = await service.request(path)
    t.strictSame([response.status, response.json.code], [503, 'store_unavailable'])
  }
  await service.api.close()
})

t.test('usage counts are kept for 400 days by default', async (t) => {
  const now = Date.now()
  const clocks = [[Date, Date.now], [performance, performance.now]] as const
  const advanceTo = (ms: number) => clocks.map(([clock, now]) => clock.now = () => now.call(clock) + ms)
  t.teardown(() => advanceTo(0))
  const kept = async (options: { keepUsageDays?: number }, steadyMs = 60_000): Promise<number> => {
    const store = await openSqliteStore(':memory:')
    t.teardown(() => store.close())
    const service = await serveStore(store, options)
    const days = [0, 29, 31, 366, 400, 401].map((age) => day(now - age * dayMs))
    const count = usageCount({ partner: 'demo' })
    await store.recordUsage(days.map((day) => ({ ...count, day })), 'before')
    await service.request('/public/plans?partner=demo')
    advanceTo(steadyMs)
    await service.api.close()
    advanceTo(0)
    const { requestsByDay } = await store.summarise('demo', '2000-01-01', '9999-12-31')
    return days.filter((day) => requestsByDay.some((row) => row.day === day)).length
  }
  t.equal(await kept({}), 5, 'only the day before the last 400 is removed')
  t.equal(await kept({ keepUsageDays: 30 }), 2)
  t.equal(await kept({ keepUsageDays: 30 }, 59_000), 6, 'not before the clock is known to be steady')
  t.throws(() => createPartnerApi({ store: createMemoryStore() }, { keepUsageDays: 0 }), RangeError)
})
