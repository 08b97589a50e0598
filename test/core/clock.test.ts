/** Which clock determines expiry when the clocks of machines differ, or a clock is set. */
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import type { NewKey } from '../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { clockOf, type ClockReading, createClock } from '../../core/lib/clock.ts'
import { utcDay } from '../../core/lib/time.ts'
import type { LogEvent } from '../../core/log.ts'
import { awaitReceipt } from '../../core/replicas.ts'
import { deleteOldSignups } from '../../core/signups/retention.ts'
import { DAY, reservation, signup } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { useServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import { clockAhead, runProcess, type Served, startServing, stopServing } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const HOUR = 3_600_000
const operator = { actor: 'test' }

/** Sets the clock of this process. */
function settableClock(t: Test): { ahead: number } {
  const { now } = Date
  const clock = { ahead: 0 }
  Date.now = () => now() + clock.ahead
  t.teardown(() => void (Date.now = now))
  return clock
}

test('a clock that jumps and comes back leaves nothing behind', async (t) => {
  const clock = settableClock(t)
  const store = await openMemoryStore()
  const modules = ['pricing', 'signup']
  await createPartnerAdministration(store, operator).create({ slug: 'acme', name: 'A', modules })
  const { text } = await createKeyAdministration(store, operator)
    .issue({ partner: 'acme', name: 'k', environment: 'live', expiresAt: Date.now() + 2 * HOUR })
  const events: LogEvent[] = []
  const api = createPartnerApi({ store }, {
    log: (event) => events.push(event),
    keepUsageDays: 1,
    maxStalenessMs: 0,
  })
  const send = async (path: string, init: RequestInit = {}) =>
    await api.fetch(new Request(`http://a.example/service${path}`, init))
  const signUp = () =>
    send('/partner/signups', {
      method: 'POST',
      headers: { 'X-Service-Partner-Key': text, 'Idempotency-Key': 'a', 'Content-Type': 'application/json' },
      body: JSON.stringify({ partner: 'acme', email: 'jo@example.com', name: 'Jo' }),
    })
  const seen: unknown[] = []
  for (const ahead of [0, 25 * HOUR, 0, -10 * HOUR, 0]) {
    clock.ahead = ahead
    const { data } = await (await send('/health')).json()
    const code = await codeOf(text, (path, headers) => send(path.replace('/service', ''), { headers }))
    seen.push([
      code,
      (await signUp()).headers.get('Idempotent-Replayed'),
      Math.round(data.clock_skew_ms / HOUR),
    ])
    await api.flush()
  }
  t.same(seen, [
    ['ok', null, NaN],
    ['ok', 'true', 25],
    ['ok', 'true', NaN],
    ['ok', 'true', -10],
    ['ok', 'true', NaN],
  ])
  const skews = events.flatMap(({ event, skew_ms }) =>
    event === 'clock_skew' ? Math.round(skew_ms! / HOUR) : []
  )
  t.same(skews, [25, -10], 'one event for each jump')
  const today = utcDay(Date.now())
  const used = (await store.summarise('acme', today, today)).requestsByEndpoint
  t.equal(used.reduce((sum, { requests }) => sum + requests, 0), 10, 'no count was removed')
  await api.close()
})

async function codeOf(
  key: string,
  send: (path: string, headers: Record<string, string>) => Promise<Response>,
): Promise<string> {
  const answer = await send('/service/public/plans?partner=acme', { 'x-service-partner-key': key })
  return answer.status === 200 ? 'ok' : (await answer.json()).code
}

test('the time never goes back, and jumps of a clock that comes back do not show', (t) => {
  const { now: date } = Date
  const { now: elapsed } = performance
  t.teardown(() => {
    Date.now = date
    performance.now = elapsed
  })
  let at = 0
  let ahead = 0
  Date.now = () => Math.floor(1e12 + at + ahead)
  performance.now = () => 5_000 + at
  const anyJump = fc.integer({ min: -30 * DAY, max: 500 * DAY })
  const waits = fc.array(fc.double({ min: 0, max: 8_000, noNaN: true }), { maxLength: 7 })
  const step = fc.record({ jump: fc.oneof(anyJump, fc.integer({ min: -150, max: 150 })), waits, back: waits })
  fc.assert(fc.property(fc.array(step), (steps) => {
    ahead = 0
    const clock = createClock()
    let last = clock.now()
    for (const { jump, waits, back } of steps) {
      for (const [given, pauses] of [[jump, waits], [0, [0, ...back]]] as const) {
        ahead = given
        for (const pause of pauses) {
          at += pause
          const instant = clock.now()
          const truth = 1e12 + at
          if (instant < last || Math.abs(instant - truth) > 1_000) return false
          if (
            Math.abs(given) > 200 &&
            (Math.abs(clock.skewMs() - given) > 200 || clock.deletionTime() !== undefined)
          ) {
            return false
          }
          last = instant
        }
      }
    }
    return true
  }))
  t.test('a change that lasts is the new time', (t) => {
    at = Math.ceil(at)
    ahead = 0
    const clock = createClock()
    for (ahead of [0, 400 * DAY, -DAY, 0]) {
      const settled = [0, 59_000, 1_000].map((pause) => {
        at += pause
        return [clock.deletionTime() !== undefined, Math.abs(clock.now() - Date.now()) < 2]
      })
      const isFirst = ahead === 0 && settled[0]![1]
      t.same(
        settled,
        isFirst
          ? [[false, true], [false, true], [true, true]]
          : [[false, false], [false, false], [true, true]],
      )
    }
    t.end()
  })
  t.end()
})

test('the time is that of the store, within the round trip of the last read', (t) => {
  const answer = fc.record({ there: fc.nat(300), back: fc.nat(300) })
  const anyOffset = fc.oneof(fc.integer({ min: -30 * HOUR, max: 30 * HOUR }), fc.integer({ min: -5, max: 5 }))
  fc.assert(fc.property(anyOffset, fc.array(answer, { minLength: 1, maxLength: 8 }), (offset, answers) => {
    let reading: ClockReading | undefined
    const clock = createClock(() => reading)
    const start = Date.now()
    const elapsed = performance.now()
    const storeAt = (at: number) => start + offset + (at - elapsed)
    let at = elapsed
    let shortest = Infinity
    for (const { there, back } of answers) {
      reading = { at: Math.floor(storeAt(at + there)), askedAt: at, answeredAt: at + there + back }
      at += there + back
      shortest = Math.min(shortest, there + back)
      // The clocks of store, service and test are rounded to milliseconds.
      if (Math.abs(clock.now(at) - storeAt(at)) > shortest + 5) return false
    }
    return true
  }))
  t.end()
})

test('what has expired is deleted by the earlier of the clocks of store and server', async (t) => {
  const { now: date } = Date
  const { now: elapsed } = performance
  t.teardown(() => {
    Date.now = date
    performance.now = elapsed
  })
  let passed = 0
  Date.now = () => 20_000 * DAY + passed
  performance.now = () => 5_000 + passed
  for (const days of [20, -20, 0]) {
    const clock = createClock(() => {
      const at = performance.now()
      return { at: Date.now() + days * DAY, askedAt: at, answeredAt: at }
    })
    clock.now()
    passed += 60_000
    const closing = new AbortController()
    const listed: (number | undefined)[] = []
    const store = {
      listSignups(_partner: unknown, after: { readonly createdAt: number } | undefined) {
        listed.push(after?.createdAt)
        return []
      },
      deleteSignups: () => 0,
      eraseRemains: () => closing.abort(),
    }
    await deleteOldSignups(store, { keepSignupsDays: 10 }, clock, t.error, closing.signal)
    const today = 20_000 + Math.min(days, 0)
    t.same(listed, [(today - 10) * DAY - 1], `the clock of the store is ${days} days ahead`)
  }
})

test('old signups stay while a given clock returns no instant, and the log says why', async (t) => {
  let instant = 20_000 * DAY
  const clock = clockOf({ clock: () => undefined, now: undefined }, () => instant)
  instant = NaN
  const closing = new AbortController()
  const failures: unknown[] = []
  const store = {
    listSignups() {
      t.fail('nothing is old at no instant')
      return []
    },
    deleteSignups: () => 0,
    eraseRemains: () => closing.abort(),
  }
  await deleteOldSignups(store, { keepSignupsDays: 10 }, clock, (error) => {
    failures.push(String(error))
    closing.abort()
  }, closing.signal)
  t.same(failures, ['RangeError: clock must return milliseconds since the epoch, not NaN.'])
})

test(
  'one server is an hour behind the store, another 25 hours ahead',
  { skip: hasServer() ?? false },
  async (t) => {
    const postgres = await useServer()
    t.teardown(() => postgres.close())
    const url = await postgres.createDatabase()
    const store = await openPostgresStore(url)
    t.teardown(() => store.close())
    const modules = ['pricing', 'signup']
    await createPartnerAdministration(store, operator).create({ slug: 'acme', name: 'Acme', modules })
    const keys = createKeyAdministration(store, operator)
    const issue = (more: Partial<NewKey> = {}) =>
      keys.issue({ partner: 'acme', name: 'k', environment: 'live', ...more })
    const serve = (name: string, ms: number) =>
      startServing(['serve', '--port', '0', '--replica-name', name, '--limit', 'key=0'], url, clockAhead(ms))
    const servers = await Promise.all([serve('behind', -HOUR), serve('ahead', 25 * HOUR)])
    for (const { child } of servers) t.teardown(() => child.kill('SIGKILL'))
    const [behind, ahead] = servers as [Served, Served]
    const codes = ({ text }: { readonly text: string }): Promise<string[]> =>
      Promise.all(servers.map(({ url }) => codeOf(text, (path, headers) => fetch(url + path, { headers }))))
    const both = (code: string) => [code, code]

    await t.test('keys expire by the clock of the store', async (t) => {
      const [ended, overlapping, brief, long, byWrongClock] = await Promise.all([
        issue(),
        issue(),
        issue({ expiresAt: Date.now() + 2_000 }),
        issue({ expiresAt: Date.now() + HOUR }),
        issue(),
      ])
      t.same(await codes(long), both('ok'), 'the key has not expired for the server that is ahead')
      t.same(await codes(ended), both('ok'))
      await keys.rotate(ended.key.id, { overlapMs: 0 })
      const skews = new Map((await awaitReceipt(store)).replicas.map(({ name, skewMs }) => [name, skewMs]))
      t.same(await codes(ended), both('key_expired'), 'without an overlap, the key has ended by every clock')
      t.ok(Math.abs(skews.get('behind')! + HOUR) < 60_000, `behind by ${skews.get('behind')}`)
      t.ok(Math.abs(skews.get('ahead')! - 25 * HOUR) < 60_000, `ahead by ${skews.get('ahead')}`)
      await keys.rotate(overlapping.key.id, { overlapMs: HOUR })
      t.same(await codes(overlapping), both('ok'))
      const rotate = ['keys', 'rotate', byWrongClock.key.id, '--overlap', '1h', '--wait']
      const rotated = await runProcess(rotate, { env: { PARTNER_API_STORE: url }, ...clockAhead(-2 * HOUR) })
      t.equal(rotated.code, 0)
      t.match(rotated.stderr, /warning: The clock of behind is \d+ ms behind the store's clock/)
      t.match(rotated.stderr, /warning: The clock of ahead is \d+ ms ahead of the store's clock/)
      t.same(await codes(byWrongClock), both('ok'), 'the overlap ends by the clock of the store')
      await until(async () => (await codes(brief)).join() === both('key_expired').join(), 'a key to expire')
    })

    await t.test('a signup repeated on another server is stored once', async (t) => {
      const { text } = await issue()
      const send = async ({ url }: Served) => {
        const answer = await fetch(`${url}/service/partner/signups`, {
          method: 'POST',
          headers: {
            'X-Service-Partner-Key': text,
            'Idempotency-Key': 'once',
            'Content-Type': 'application/json',
          },
          body: JSON.stringify({ partner: 'acme', email: 'jo@example.com', name: 'Jo' }),
        })
        t.equal(answer.status, 201)
        return [(await answer.json()).data, answer.headers.get('Idempotent-Replayed')]
      }
      const [first] = await send(behind)
      t.ok(
        Math.abs(Date.parse(first.created_at) - Date.now()) < 60_000,
        'created_at is by the clock of the store',
      )
      t.same(await send(ahead), [first, 'true'])
      t.same(await send(behind), [first, 'true'])
    })

    await t.test('an idempotency reservation expires by the clock of the store', async (t) => {
      const { key } = await issue()
      const createdAt = Date.now()
      const later = createdAt + 25 * HOUR
      const sent = (id: string, createdAt: number) => signup(id, { keyId: key.id, createdAt })
      const lasting = reservation({ expiresAt: createdAt + DAY })
      await store.createSignup(sent('1', createdAt), lasting)
      // Enough signups to remove the reservation if it had expired.
      for (const id of ['a', 'b']) await store.createSignup(sent(id, later), undefined)
      const again = await store.createSignup(sent('2', later), { ...lasting, expiresAt: later + DAY })
      t.match(again, { outcome: 'replayed', id: signup('1').id })
    })

    await t.test('health and the log report a skewed clock, and no other', async (t) => {
      const events: LogEvent[] = []
      const api = createPartnerApi({ store }, { log: (event) => events.push(event), replicaName: 'right' })
      const send = (path: string, headers: Record<string, string> = {}) =>
        api.fetch(new Request(`http://a.example${path}`, { headers }))
      t.equal(await codeOf((await issue()).text, send), 'ok')
      t.same((await (await send('/service/health')).json()).data, { status: 'ok' })
      await issue()
      t.match((await awaitReceipt(store)).replicas.find(({ name }) => name === 'right'), { skewMs: 0 })
      await api.close()
      t.same(events.filter(({ event }) => event === 'clock_skew'), [])
      for (const served of servers) {
        const { data } = await (await fetch(`${served.url}/service/health`)).json()
        t.match(data, { status: 'ok', clock_skew_ms: Number })
        const { stderr } = await stopServing(served)
        const logged = stderr.split('\n').filter((line) => line.includes('clock_skew'))
        t.match(logged.map((line) => JSON.parse(line)), [{ level: 'warn', skew_ms: Number }], 'once')
      }
    })
  },
)
