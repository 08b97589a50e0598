/** Requests are counted in the background by partner, day, endpoint and outcome, without losing counts. */
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import t from 'tap'
import { createLastUsedRecorder } from '../../core/keys/last-used.ts'
import { Problem } from '../../core/http/problem.ts'
import type { RecordedProblem, UsageCount } from '../../core/ports/reports.ts'
import type { Store } from '../../core/ports/store.ts'
import { defineEndpoint } from '../../core/routes/host-endpoints.ts'
import { createUsageCounter } from '../../core/reports/usage-counter.ts'
import { openMemoryStore, openUnregisteredStore } from '../support/memory-store.ts'
import { type PartnerService, serveStore } from '../support/partner-service.ts'

const noon = Date.UTC(2027, 5, 15, 12)
const day = '2027-06-15'

/** The live key of a partner. */
function keyOf(partner: string) {
  return { id: `key of ${partner}`, partner, environment: 'live' } as const
}

/** The count of `keyOf`, without its numbers. */
function countOf(partner: string) {
  return { partner, keyId: keyOf(partner).id, environment: 'live', day, endpoint: 'plans' } as const
}

/** Collects written counts, or refuses them. */
function createUsageLedger() {
  const written: UsageCount[] = []
  const calls: number[] = []
  const batches: string[] = []
  let refusing = 0
  return {
    written,
    calls,
    batches,
    refuse: (calls: number) => void (refusing = calls),
    recordUsage(counts: readonly UsageCount[], batch: string) {
      calls.push(counts.length)
      batches.push(batch)
      if (refusing-- > 0) throw new Error('busy')
      written.push(...counts)
    },
    total: () => written.reduce((sum, { requests }) => sum + requests, 0),
  }
}

/** Replaces timers with ones that the test fires. */
function holdTimers(): { readonly delays: number[]; fire(): void; restore(): void } {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const waiting = new Map<unknown, () => void>()
  const delays: number[] = []
  Object.assign(globalThis, {
    setTimeout(run: () => void, ms: number) {
      delays.push(ms)
      const id = {}
      waiting.set(id, run)
      return id
    },
    clearTimeout: (id: unknown) => void waiting.delete(id),
  })
  return {
    delays,
    fire() {
      for (const [id, run] of [...waiting]) {
        waiting.delete(id)
        run()
      }
    },
    restore: () => void Object.assign(globalThis, { setTimeout: set, clearTimeout: clear }),
  }
}

/** Lets pending work without timers finish. */
async function finishPendingWork(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

async function countsOf(
  { store }: PartnerService,
  partner = 'demo',
): Promise<Record<string, readonly number[]>> {
  const { requestsByEndpoint } = await store.summarise(partner, '0001-01-01', '9999-12-31')
  return Object.fromEntries(
    requestsByEndpoint.map(({ endpoint, requests, errors }) => [endpoint, [requests, errors]]),
  )
}

await t.test('every request of a key is counted once, for partners only those of live keys', async (t) => {
  const service = await serveStore(await openMemoryStore(), {
    limits: { verify: { quota: 1, windowSeconds: 60 } },
  })
  const { api, request, post } = service
  const demo = '?partner=demo'
  const counted: readonly (readonly [status: number, request: () => ReturnType<typeof request>])[] = [
    [200, () => request(`/public/plans${demo}`)],
    [200, () => request(`/public/plans${demo}`)],
    [200, () => request(`/public/plans${demo}`, { method: 'HEAD' })],
    [304, () => request(`/public/plans${demo}`, { headers: { 'if-none-match': '*' } })],
    [400, () => request(`/public/plans${demo}&x=1`)],
    [400, () => request('/public/plans')],
    [403, () => request('/public/plans?partner=acme')],
    [404, () => request(`/public/profiles/nothing${demo}`)],
    [403, () => request(`/public/banner${demo}`, { key: 'demo profiles' })],
    [403, () => request(`/public/banner${demo}`, { key: 'demo fenced' })],
    [401, () => request(`/public/banner${demo}`, { key: 'demo revoked' })],
    [200, () => post('/developer/verify-key', { partner: 'demo' })],
    [429, () => post('/developer/verify-key', { partner: 'demo' })],
    [201, () => post('/partner/signups', { partner: 'demo', email: 'a@b.c', name: 'A' })],
    [422, () => post('/partner/signups', { partner: 'demo' })],
    [413, () => post('/partner/signups', 'x'.repeat(40_000))],
    [200, () => request(`/partner/reports/summary${demo}`)],
  ]
  for (const [status, send] of counted) t.equal((await send()).status, status)
  const uncounted: readonly (readonly [status: number, request: () => ReturnType<typeof request>])[] = [
    [200, () => request(`/public/plans${demo}`, { key: 'demo test' })],
    [401, () => request(`/public/plans${demo}`, { key: { text: 'nonsense' } })],
    [404, () => request(`/public/nothing${demo}`)],
    [405, () => request(`/public/plans${demo}`, { method: 'DELETE' })],
    [204, () => request('/public/plans', { method: 'OPTIONS' })],
    [406, () => request(`/public/plans${demo}`, { headers: { accept: 'text/html' } })],
    [200, () => request('/health')],
  ]
  for (const [status, send] of uncounted) t.equal((await send()).status, status)
  t.strictSame(await countsOf(service), {}, 'nothing is written during requests')
  await api.flush()
  const { keys } = service.world
  const ofKeys = Map.groupBy(
    await service.store.keyUsage(Object.values(keys).map(({ id }) => id), '0001-01-01', '9999-12-31'),
    ({ keyId }) => keyId,
  )
  t.strictSame(
    ofKeys.get(keys['demo test'].id)?.map(({ endpoint, requests, errors }) => [endpoint, requests, errors]),
    [['plans', 1, 0]],
  )
  t.strictSame([...ofKeys.values()].flat().reduce((sum, { requests }) => sum + requests, 0), 18)
  t.strictSame(ofKeys.get(keys['demo profiles'].id)?.map(({ endpoint, errors }) => [endpoint, errors]), [[
    'banner',
    1,
  ]])
  t.strictSame(await countsOf(service), {
    'plans': [7, 3],
    'profile': [1, 1],
    'banner': [3, 3],
    'verify-key': [2, 1],
    'sign-up': [3, 2],
    'report-summary': [1, 0],
  })
  const { data } = (await request(`/partner/reports/summary${demo}`)).json
  t.strictSame([data.requests.total, data.requests.errors], [17, 10])
  t.strictSame(data.requests.by_endpoint[0], {
    method: 'GET',
    path: '/service/public/plans',
    requests: 7,
    errors: 3,
  })
  await api.close()
  t.strictSame((await countsOf(service))['report-summary'], [2, 0], 'written counts are not written again')
  t.strictSame(await countsOf(service, 'acme'), {}, 'a mismatched partner is not counted')
})

await t.test('asynchronous responses are counted', async (t) => {
  const store = await openMemoryStore()
  const slow: Store = {
    ...store,
    revision: async () => await store.revision(),
    findKey: async (id) => await store.findKey(id),
    listPlans: () => Promise.reject(new Error('gone')),
  }
  const service = await serveStore(slow)
  t.equal((await service.request('/public/plans?partner=demo')).status, 503)
  t.equal((await service.request('/public/banner?partner=demo')).status, 200)
  await service.api.close()
  t.strictSame(await countsOf(service), { plans: [1, 1], banner: [1, 0] })
})

await t.test('counts are written within 5 s without further requests', async (t) => {
  const store = await openUnregisteredStore()
  const service = await serveStore(store)
  const timers = holdTimers()
  t.teardown(timers.restore)
  await service.request('/public/plans?partner=demo')
  await service.request('/public/plans?partner=demo')
  t.ok(
    timers.delays.length > 0 && timers.delays.every((ms) => ms <= 2_000),
    'writes are delayed by 2 s at most',
  )
  t.ok(timers.delays.length <= 2, 'all counts share one timer')
  t.strictSame(await countsOf(service), {})
  timers.fire()
  await finishPendingWork()
  t.strictSame(await countsOf(service), { plans: [2, 0] })
  await service.request('/public/plans?partner=demo')
  timers.fire()
  await finishPendingWork()
  t.strictSame(await countsOf(service), { plans: [3, 0] }, 'later counts are written too')
  await service.api.close()
})

t.test('requests count for their UTC day', async (t) => {
  const ledger = createUsageLedger()
  const counter = createUsageCounter(ledger)
  const midnight = Date.UTC(2027, 5, 16)
  for (const at of [midnight - 1, midnight, midnight - 2, midnight + 1, noon - 30 * 86_400_000]) {
    counter.count(keyOf('demo'), 'plans', 200, at)
  }
  await counter.flush()
  t.strictSame(ledger.written.toSorted((a, b) => a.day < b.day ? -1 : 1), [
    { ...countOf('demo'), day: '2027-05-16', requests: 1, errors: 0 },
    { ...countOf('demo'), requests: 2, errors: 0 },
    { ...countOf('demo'), day: '2027-06-16', requests: 2, errors: 0 },
  ])
})

t.test('a failed batch is retried unchanged before later counts', async (t) => {
  const timers = holdTimers()
  t.teardown(timers.restore)
  const ledger = createUsageLedger()
  const counter = createUsageCounter(ledger)
  ledger.refuse(2)
  counter.count(keyOf('demo'), 'plans', 500, noon)
  timers.fire()
  await finishPendingWork()
  counter.count(keyOf('demo'), 'plans', 200, noon)
  counter.count(keyOf('acme'), 'plans', 399, noon)
  timers.fire()
  await finishPendingWork()
  t.strictSame(ledger.written, [])
  timers.fire()
  await finishPendingWork()
  t.strictSame(ledger.written[0], { ...countOf('demo'), requests: 1, errors: 1 })
  t.strictSame(ledger.written.slice(1).toSorted((a, b) => a.partner < b.partner ? -1 : 1), [
    { ...countOf('acme'), requests: 1, errors: 0 },
    { ...countOf('demo'), requests: 1, errors: 0 },
  ])
  const [first, second, third, fourth] = ledger.batches
  t.strictSame([second, third], [first, first], 'with the same batch id')
  t.not(fourth, first)
  const delays = timers.delays.length
  timers.fire()
  await finishPendingWork()
  t.strictSame([ledger.calls.length, timers.delays.length], [4, delays], 'nothing remains to be written')

  ledger.refuse(1)
  counter.count(keyOf('demo'), 'plans', 200, noon)
  await counter.flush()
  const after = timers.delays.length
  timers.fire()
  await finishPendingWork()
  t.equal(timers.delays.length, after, 'a failed flush sets no timer, because the service may be closed')
  await counter.flush()
  t.equal(ledger.total(), 4, 'no count is lost')
})

t.test('many counts are written in batches, and a failing batch does not affect the others', async (t) => {
  const ledger = createUsageLedger()
  const counter = createUsageCounter(ledger)
  for (let n = 0; n < 1300; n++) counter.count(keyOf(`partner-${n}`), 'plans', 200, noon)
  const half = ledger.recordUsage
  let calls = 0
  const failing = createUsageCounter({
    recordUsage: (counts, batch) => ++calls === 2 ? Promise.reject(new Error('busy')) : half(counts, batch),
  })
  for (let n = 0; n < 1300; n++) failing.count(keyOf(`partner-${n}`), 'plans', 200, noon)
  await counter.flush()
  t.ok(ledger.calls.every((size) => size <= 100), 'a batch has 100 counts at most')
  t.equal(ledger.total(), 1300)
  await failing.flush()
  t.ok(ledger.total() < 2600, 'the failed batch is pending')
  await failing.flush()
  t.equal(ledger.total(), 2600)
  t.equal(new Set(ledger.written.map(({ partner }) => partner)).size, 1300)
})

t.test('other work is done between the batches of a synchronous store', async (t) => {
  let turn = 0
  let handle = setImmediate(function next() {
    turn++
    handle = setImmediate(next)
  })
  t.teardown(() => clearImmediate(handle))
  const turns: number[] = []
  const counter = createUsageCounter({ recordUsage: () => void turns.push(turn) })
  for (let n = 0; n < 500; n++) counter.count(keyOf(`partner-${n}`), 'plans', 200, noon)
  await counter.flush()
  t.equal(new Set(turns).size, 5)
})

t.test('requests during a write are written after it', async (t) => {
  const written: UsageCount[] = []
  let release = (): void => undefined
  const counter = createUsageCounter({
    async recordUsage(counts) {
      await new Promise<void>((resolve) => release = resolve)
      written.push(...counts)
    },
  })
  counter.count(keyOf('demo'), 'plans', 200, noon)
  const first = counter.flush()
  await finishPendingWork()
  counter.count(keyOf('demo'), 'plans', 200, noon)
  const second = counter.flush()
  release()
  await first
  t.strictSame(written.map(({ requests }) => requests), [1])
  release()
  await finishPendingWork()
  release()
  await second
  t.strictSame(written.map(({ requests }) => requests), [1, 1])
})

t.test('the number of counters is bounded', async (t) => {
  const ledger = createUsageLedger()
  const counter = createUsageCounter(ledger, () => undefined, 100)
  for (let n = 0; n < 1000; n++) counter.count(keyOf(`partner-${n}`), 'plans', 200, noon)
  for (let n = 0; n < 100; n++) counter.count(keyOf('partner-7'), 'plans', 404, noon)
  const testKey = { ...keyOf('partner-7'), id: 'test key', environment: 'test' } as const
  counter.count(testKey, 'plans', 200, noon)
  counter.count({ ...keyOf('partner-990'), id: 'another' }, 'plans', 200, noon)
  counter.count({ ...keyOf('partner-85'), id: 'another' }, 'plans', 200, noon)
  await counter.flush()
  t.equal(ledger.written.length, 100)
  t.strictSame(
    ledger.written.slice(80).map(({ partner, keyId, requests }) => [partner, keyId, requests]),
    Array.from({ length: 20 }, (_, n) => [`partner-${80 + n}`, undefined, n === 5 ? 2 : 1]),
    'the last fifth counts partners without keys',
  )
  t.strictSame(ledger.written.find(({ partner }) => partner === 'partner-7'), {
    ...countOf('partner-7'),
    requests: 101,
    errors: 100,
  }, 'existing counters continue')
  counter.count(keyOf('partner-999'), 'plans', 200, noon)
  await counter.flush()
  t.equal(ledger.written.at(-1)?.partner, 'partner-999', 'a write frees counters')
})

await t.test('keys of one partner take half of the counters and of the pending uses at most', async (t) => {
  const ledger = createUsageLedger()
  const counter = createUsageCounter(ledger, undefined, 100)
  const keyOf = (id: string, partner: string) => ({ id, partner, environment: 'live' } as const)
  for (let n = 0; n < 100; n++) counter.count(keyOf(`a${n}`, 'acme'), 'plans', 200, noon)
  counter.count(keyOf('b', 'beta'), 'plans', 200, noon)
  await counter.flush()
  const counted = ledger.written.map(({ partner, keyId, requests }) => [partner, keyId, requests])
  t.strictSame(counted.slice(40), [['acme', undefined, 60], ['beta', 'b', 1]])

  let isDown = true
  const used: string[] = []
  const uses = createLastUsedRecorder({
    recordKeyUses(all) {
      if (isDown) throw new Error('silent')
      used.push(...all.keys())
    },
  })
  for (let n = 0; n < 12_000; n++) uses.record({ id: `a${n}`, partner: 'acme' }, noon)
  uses.record({ id: 'b', partner: 'beta' }, noon)
  t.equal(uses.dropped(), 2_000)
  isDown = false
  await uses.flush()
  t.equal(used.length, 10_001)
  t.equal(used.at(-1), 'b')
  for (let n = 0; n < 12_000; n++) uses.record({ id: `c${n}`, partner: 'acme' }, noon)
  t.equal(uses.dropped(), 4_000, 'a write frees places')
  await uses.flush()
})

await t.test('the last use of a key is written once a minute, and when the clock was set back', async (t) => {
  const written: [string, number][] = []
  const store = await openMemoryStore()
  const uses = createLastUsedRecorder({ ...store, recordKeyUses: (all) => void written.push(...all) })
  for (const at of [noon, noon + 1, noon + 59_999, noon + 60_000, noon + 60_001, noon - 1]) {
    uses.record({ id: 'a', partner: 'acme' }, at)
    await uses.flush()
  }
  uses.record({ id: 'b', partner: 'acme' }, noon)
  await uses.flush()
  t.strictSame(written, [['a', noon], ['a', noon + 60_000], ['a', noon - 1], ['b', noon]])
})

await t.test('uses of keys that the store does not take are kept', async (t) => {
  const written: ReadonlyMap<string, number>[] = []
  let isDown = true
  const recordKeyUses = (all: ReadonlyMap<string, number>) => {
    if (isDown) throw new Error('silent')
    written.push(all)
  }
  const uses = createLastUsedRecorder({ ...await openMemoryStore(), recordKeyUses })
  for (const [id, at] of [['a', noon], ['b', noon], ['a', noon + 60_000]] as const) {
    uses.record({ id, partner: 'acme' }, at)
    await uses.flush()
  }
  isDown = false
  await uses.flush()
  t.strictSame(written, [new Map([['a', noon + 60_000], ['b', noon]])])
  for (let n = 0; n < 2_500; n++) uses.record({ id: `k${n}`, partner: 'acme' }, noon)
  await uses.flush()
  t.strictSame(
    written.slice(1).map(({ size }) => size),
    [1_000, 1_000, 500],
    'a store is not blocked by many',
  )
})

t.test('a failing write is retried a few times and keeps no process alive', (t) => {
  const module = new URL('../../core/lib/write-behind.ts', import.meta.url).href
  const program = `
    import { createWriteBehind } from ${JSON.stringify(module)}
    let attempts = 0
    createWriteBehind(1, () => Promise.resolve(++attempts === 0)).wake()
    process.once('exit', () => console.log(attempts))`
  const flags = ['--input-type=module', '-e', program]
  const { status, stdout } = spawnSync(process.execPath, flags, { encoding: 'utf8', timeout: 20_000 })
  t.equal(status, 0)
  t.equal(stdout, '6\n')
  t.end()
})

t.test('after close, nothing more is written and no process kept alive', (t) => {
  const module = new URL('../../core/lib/write-behind.ts', import.meta.url).href
  const program = `
    import { createWriteBehind } from ${JSON.stringify(module)}
    let attempts = 0
    const { wake, close } = createWriteBehind(1, () => Promise.resolve(++attempts === 0))
    wake()
    await close()
    wake()
    process.once('exit', () => console.log(attempts))`
  const flags = ['--input-type=module', '-e', program]
  const { status, stdout } = spawnSync(process.execPath, flags, { encoding: 'utf8', timeout: 20_000 })
  t.equal(status, 0)
  t.equal(stdout, '1\n')
  t.end()
})

await t.test('problems are written with the counts, 100 of an hour and key, and 1,000 at once', async (t) => {
  const written: (readonly RecordedProblem[])[] = []
  let refusals = 1
  const counter = createUsageCounter({
    recordUsage(_counts, _batch, _keepFrom, problems = []) {
      written.push(problems)
      if (refusals-- > 0) throw new Error('busy')
    },
  })
  let described = 0
  const refuse = (id: string, now = noon, partner = 'acme') => {
    const key = { id, partner, environment: 'live' } as const
    counter.recordProblem(key, now, () => {
      return { partner, environment: 'live', keyId: id, at: now, id: `req_${described++}`, record: '{}' }
    })
  }
  const idsOf = (problems: readonly RecordedProblem[]) => problems.map(({ id }) => id)
  for (let time = 0; time < 150; time++) refuse('a')
  refuse('b')
  refuse('a', noon + 3_600_000)
  t.equal(described, 102)
  await counter.flush()
  await counter.flush()
  t.strictSame(written.map(({ length }) => length), [25, 25, 25, 25, 25, 2], 'a failed batch is sent again')
  t.strictSame(idsOf(written[1]!), idsOf(written[0]!))
  refuse('a', noon + 3_600_000)
  await counter.flush()
  t.equal(written.at(-1)?.length, 1, 'the hour goes on after a write')
  for (let key = 0; key < 2_000; key++) refuse(`key ${key}`)
  t.equal(described, 1_103)
  t.strictSame(counter.dropped(), { requests: 0, problems: 1_000 })
  for (let partner = 0; partner < 10; partner++) {
    for (let key = 0; key < 600; key++) refuse(`${partner} ${key}`, noon, `partner-${partner}`)
  }
  for (let time = 0; time < 18; time++) refuse('theirs', noon, 'beta')
  await counter.flush()
  const partners = Map.groupBy(written.slice(7).flat(), ({ partner }) => partner)
  t.equal(partners.get('beta')?.length, 18, 'others take nothing away')
  const others = [...partners.values()].filter(([first]) => first!.partner !== 'beta')
  t.ok(others.every(({ length }) => length >= 80 && length <= 90), 'they share the rest')
  const before = described
  for (let key = 0; key < 2_000; key++) refuse(`more ${key}`)
  t.equal(described - before, 1_000, 'a write frees places')
  await counter.flush()
  t.ok(written.every(({ length }) => length <= 25), 'requests are answered between few at a time')
})

await t.test('problems of own endpoints have the detail of their code', async (t) => {
  const detail = 'jane@example.com has no order.'
  const lost = defineOwnProblem('lost', new Problem('not_found', { detail }))
  const members = { detail, required_scope: 'jane@example.com', required_module: 'jane@example.com' }
  const scoped = defineOwnProblem('scoped', new Problem('scope_missing', members))
  const service = await serveStore(await openMemoryStore(), { endpoints: [lost, scoped] })
  t.equal((await service.request('/lost?partner=demo')).json.detail, detail)
  t.equal((await service.request('/scoped?partner=demo')).json.detail, detail)
  t.equal((await service.request('/lost?partner=demo', { key: 'demo profiles' })).status, 403)
  await service.api.close()
  const rows = await service.store.listProblems({ since: 0 }, undefined, 9)
  t.notMatch(rows.map(({ record }) => record).join(), 'jane')
  const details = rows.map(({ record }) => JSON.parse(record).detail).sort()
  t.strictSame(
    details,
    [
      'There is nothing with this id.',
      'This key does not hold read:plans.',
      'The key does not hold the scope that this endpoint needs.',
    ].sort(),
  )
})

function defineOwnProblem(name: string, problem: Problem) {
  return defineEndpoint({
    name,
    method: 'GET',
    path: `/${name}`,
    scope: 'read:plans',
    summary: 'Get nothing',
    handle: () => problem,
  })
}
