/** Section 4: reports show what was done, without naming persons. */
import { MODULE_NAMES } from '../../../core/model.ts'
import type { TestKey } from '../../support/world.ts'
import { dataOf, expectInvalid, expectProblem } from './expect.ts'
import { get, post, type Service, type Suite, type TestContext, type TestResponse, until } from './service.ts'

const dayMs = 86_400_000
const person = {
  email: 'canary.person@nestling.example',
  name: 'Canaria de la Nominata',
  company: 'Canary Works',
}

/** A partner that only one test uses, and its requests. */
interface Counted {
  readonly slug: string
  readonly live: TestKey
  readonly test: TestKey
  request(path: string, key?: TestKey): Promise<TestResponse>
  signUp(more: object, key?: TestKey): Promise<TestResponse>
}

async function createCounted(service: Service, slug: string): Promise<Counted> {
  const { world, root } = service
  await world.partners.create({ slug, name: slug, modules: MODULE_NAMES })
  const live = await world.issue({ partner: slug })
  const test = await world.issue({ partner: slug, environment: 'test' })
  return {
    slug,
    live,
    test,
    request: (path, key = live) =>
      get(service, `${path}${path.includes('?') ? '&' : '?'}partner=${slug}`, { key }),
    signUp: (more, key = live) =>
      post(service, JSON.stringify({ partner: slug, ...person, ...more }), {
        target: `${root}/partner/signups`,
        key,
      }),
  }
}

export const reports: readonly Suite[] = [{
  tests: {
    'the summary counts live signups and requests': async (t, service) =>
      await summary(t, await createCounted(service, 'counted'), service),
    'the summary covers the requested period, 30 days by default': async (t, service) =>
      await periods(t, await createCounted(service, 'dated')),
    'the activity lists changes and signups without persons': async (t, service) =>
      await activity(t, await createCounted(service, 'active'), service),
    async 'a test key may read the reports'(t, service) {
      for (const report of ['summary', 'activity']) {
        const key = service.world.keys['demo test']
        t.equal((await get(service, `/partner/reports/${report}?partner=demo`, { key })).status, 200, report)
      }
    },
  },
}]

async function summary(t: TestContext, counted: Counted, { root }: Service): Promise<void> {
  const summaryOf = () => counted.request('/partner/reports/summary')
  const { signups, requests, daily } = dataOf(t, await summaryOf(), 'before any activity')
  t.strictSame(signups, { total: 0, by_plan: [], by_country: [] })
  t.equal(requests.errors, 0)
  t.equal(daily.length, 30)

  for (const more of [{ plan: 'starter', country: 'de' }, { plan: 'starter' }, {}]) {
    t.equal((await counted.signUp(more)).status, 201)
  }
  expectProblem(t, await counted.signUp({ plan: 'none' }), 'invalid_body', 'counted as an error')
  t.equal((await counted.signUp({ plan: 'starter' }, counted.test)).status, 201, 'a signup with a test key')
  t.equal((await counted.request('/public/plans', counted.test)).status, 200)
  t.equal((await counted.request('/public/plans')).status, 200)

  interface Row {
    readonly path: string
    readonly requests: number
  }
  const rowOf = ({ json }: TestResponse, path: string): Row =>
    json.data.requests.by_endpoint.find((row: Row) => row.path === root + path)
  const { response } = await until(summaryOf, (response) => rowOf(response, '/public/plans') !== undefined)
  const { data } = response.json
  t.strictSame(data.signups, {
    total: 3,
    by_plan: [{ plan: 'starter', signups: 2 }, { plan: null, signups: 1 }],
    by_country: [{ country: null, signups: 2 }, { country: 'DE', signups: 1 }],
  }, 'test keys do not count')
  const [read, sent] = ['/public/plans', '/partner/signups'].map((path) => rowOf(response, path))
  t.strictSame(read, { method: 'GET', path: `${root}/public/plans`, requests: 1, errors: 0 })
  t.strictSame(sent, { method: 'POST', path: `${root}/partner/signups`, requests: 4, errors: 1 })
  for (const what of ['requests', 'errors'] as const) {
    const of = (rows: readonly Record<typeof what, number>[]) => rows.reduce((sum, row) => sum + row[what], 0)
    const total = what === 'requests' ? data.requests.total : data.requests.errors
    t.strictSame([of(data.daily), of(data.requests.by_endpoint)], [total, total], `${what} add up`)
  }
  t.equal(data.daily.reduce((sum: number, row: { signups: number }) => sum + row.signups, 0), 3)
}

async function periods(t: TestContext, { request }: Counted): Promise<void> {
  const summaryOf = (query: string) => request(`/partner/reports/summary?${query}`)
  const day = (instant: number): string => new Date(instant).toISOString().slice(0, 10)
  const cases: readonly (readonly [query: string, from: string, to: string])[] = [
    ['from=2024-02-28&to=2024-03-01', '2024-02-28', '2024-03-01'],
    ['to=2024-02-29', '2024-01-31', '2024-02-29'],
    ['from=2023-03-01', '2023-03-01', '2024-02-29'],
    ['from=2023-03-01&to=2024-02-29', '2023-03-01', '2024-02-29'],
  ]
  for (const [query, from, to] of cases) {
    const { period, daily } = dataOf(t, await summaryOf(query), query)
    t.strictSame(period, { from, to })
    const dates = daily.map(({ date }: { date: string }) => date)
    const wanted = Array.from({ length: dates.length }, (_, index) => day(Date.parse(from) + index * dayMs))
    t.strictSame([dates, wanted.at(-1)], [wanted, to], 'there is a row for every day')
  }
  const { period } = dataOf(t, await summaryOf(''), 'by default')
  t.equal(Date.parse(period.to) - Date.parse(period.from), 29 * dayMs, '30 days by default')
  t.ok(Math.abs(Date.parse(period.to) - Date.now()) < 2 * dayMs, 'the period ends today')
  const wrong: readonly (readonly [query: string, parameters: readonly string[]])[] = [
    ['from=2024-01-02&to=2024-01-01', ['from']],
    ['from=2023-03-01&to=2024-03-01', ['from']],
    ['from=2023-02-29&to=today', ['from', 'to']],
    ['from=2024-01-01&from=2024-01-01&limit=1', ['from', 'limit']],
    ['from=2024-01-02&to=2024-01-01&limit=1', ['from', 'limit']],
  ]
  for (const [query, parameters] of wrong) expectInvalid(t, await summaryOf(query), parameters, query)
}

async function activity(t: TestContext, active: Counted, { world }: Service): Promise<void> {
  const { request, signUp, slug } = active
  const more = { message: 'Canary message', metadata: { canary: 'x' } }
  const sent = await signUp({ plan: 'starter', country: 'de', ...more })
  await signUp({}, active.test)
  const issued = await world.issue({ partner: slug, scopes: ['read:profiles'] })
  await world.keyRing.disable(issued.id)
  await world.keyRing.enable(issued.id)
  await world.keyRing.grant(issued.id, ['read:banner'])
  await world.keyRing.remove(issued.id, ['read:profiles'])
  await world.keyRing.revoke(issued.id)
  await world.partners.deactivate(slug, ['pricing'])
  await world.partners.activate(slug, ['pricing'])

  const response = await request('/partner/reports/activity?limit=100')
  const rows: readonly {
    id: string
    type: string
    occurred_at: string
    subject: object
  }[] = dataOf(t, response, 'all')
  t.strictSame(response.json.page, { limit: 100, has_more: false, next_cursor: null })
  const times = rows.map((row) => row.occurred_at)
  t.strictSame(times, times.toSorted().reverse(), 'newest first')
  const key = { key_id: issued.id, hint: `…${issued.text.slice(-4)}` }
  const subjects = (type: string) => rows.filter((row) => row.type === type).map(({ subject }) => subject)
  t.strictSame(subjects('signup.created'), [{
    signup_id: sent.json.data.id,
    email: 'c***@n***.example',
    name: 'C. d. l.',
    country: 'DE',
    plan: 'starter',
  }])
  for (const type of ['key.disabled', 'key.enabled', 'key.revoked']) t.strictSame(subjects(type), [key], type)
  t.strictSame(subjects('scope.granted'), [{ ...key, scope: 'read:banner' }])
  t.strictSame(subjects('scope.removed'), [{ ...key, scope: 'read:profiles' }])
  t.strictSame(subjects('module.deactivated'), [{ module: 'pricing' }])
  const own = subjects('key.issued').filter((subject) => Object.values(subject)[0] === issued.id)
  t.strictSame(own, [key], 'key.issued')
  t.strictSame(subjects('module.activated'), [{ module: 'pricing' }])
  const everything = [...response.headers].join('\n') + response.text
  t.ok(!/canary|nominata|nestling|tester|operator/i.test(everything), 'no personal data or operator is shown')

  const found: unknown[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after = cursor === '' ? '' : `&cursor=${cursor}`
    const { json } = await request(`/partner/reports/activity?limit=2${after}`)
    found.push(...json.data)
    cursor = json.page.next_cursor
  }
  t.strictSame(found, rows, 'the pages together are the list')
  const some = await request('/partner/reports/activity?type=key.revoked&type=signup.created')
  const wanted = rows.filter(({ type }) => /revoked|signup/.test(type))
  t.strictSame(dataOf(t, some, 'filtered by type'), wanted)
  expectInvalid(
    t,
    await request('/partner/reports/activity?type=key.*&limit=101'),
    ['limit', 'type'],
    'invalid parameters',
  )
  const cursorOfAll = (await request('/partner/reports/activity?limit=1')).json.page.next_cursor
  const foreign = await request(`/partner/reports/activity?type=key.issued&cursor=${cursorOfAll}`)
  expectProblem(t, foreign, 'invalid_cursor', 'a cursor of another filter')
}
