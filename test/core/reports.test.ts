/** Sections 4 and 10, reports: cases beyond the contract suites. */
import t from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { daysIn, isCalendarDay, resolvePeriod } from '../../core/reports/period.ts'
import { toWireSummary } from '../../core/reports/summary.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { usageCount } from '../contract/store/samples.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'

const dayMs = 86_400_000
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
    ' 2023-01-01',
    '+2023-01-01',
    '2023-01-01\n',
    '0000-01-01',
    '-000001-01-01',
    '12023-01-01',
    'today',
    '2023-W01-1',
    '٢٠٢٣-01-01',
  ]
  t.strictSame(impossible.filter(isCalendarDay), [])
  t.end()
})

t.test('the summary has a row for every day, and the others by count and name, those without one last', (t) => {
  const { endpoints } = compileRoutes(ROUTES, 'service')
  const counted = (requests: number, errors = 0) => ({ requests, errors })
  const data = toWireSummary({ from: '2024-02-28', to: '2024-03-01' }, {
    signupsByPlan: [
      { plan: undefined, signups: 2 },
      { plan: 'b', signups: 2 },
      { plan: 'none', signups: 0 },
      { plan: 'a', signups: 2 },
      { plan: 'c', signups: 3 },
    ],
    signupsByCountry: [{ country: 'DE', signups: 1 }, { country: undefined, signups: 8 }],
    signupsByDay: [{ day: '2024-02-28', signups: 4 }, { day: '2024-02-29', signups: 5 }],
    requestsByDay: [{ day: '2024-02-29', ...counted(9, 1) }, { day: '2024-03-01', ...counted(5) }],
    requestsByEndpoint: [
      { endpoint: 'plans', ...counted(2, 1) },
      { endpoint: 'of another release', ...counted(10) },
      { endpoint: 'banner', ...counted(2) },
      { endpoint: 'verify-key', ...counted(3) },
    ],
  }, endpoints)
  t.strictSame(data.signups, {
    total: 9,
    by_plan: [['c', 3], ['a', 2], ['b', 2], [null, 2]].map(([plan, signups]) => ({ plan, signups })),
    by_country: [{ country: null, signups: 8 }, { country: 'DE', signups: 1 }],
  })
  t.strictSame(data.requests, {
    total: 14,
    errors: 1,
    by_endpoint: [
      { method: 'POST', path: '/service/developer/verify-key', ...counted(3) },
      { method: 'GET', path: '/service/public/banner', ...counted(2) },
      { method: 'GET', path: '/service/public/plans', ...counted(2, 1) },
    ],
  })
  t.strictSame(data.daily, [
    { date: '2024-02-28', signups: 4, ...counted(0) },
    { date: '2024-02-29', signups: 5, ...counted(9, 1) },
    { date: '2024-03-01', signups: 0, ...counted(5) },
  ])
  t.end()
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
  const store = await openMemoryStore()
  t.throws(() => createPartnerApi({ store }, { keepUsageDays: 0 }), RangeError)
})
