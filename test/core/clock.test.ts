/** By which clock keys and signups are judged: on machines that disagree, and when a clock is set. */
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { type ClockReading, createClock } from '../../core/lib/time.ts'
import { apply, claim, createPartners, DAY, key, signup } from '../contract/store/samples.ts'
import { hasServer } from '../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import {
  clockAhead,
  documentOf,
  runProcess,
  runProgram,
  type Served,
  startServing,
  stopServing,
} from '../support/cli-program.ts'

const HOUR = 3_600_000

/** Sets the clock of this process. */
function settableClock(t: Test): { ahead: number } {
  const { now } = Date
  const clock = { ahead: 0 }
  Date.now = () => now() + clock.ahead
  t.teardown(() => void (Date.now = now))
  return clock
}

test('a key that has expired stays so when the clock is set back', async (t) => {
  const clock = settableClock(t)
  const store = createMemoryStore()
  const operator = { actor: 'test' }
  await createPartnerAdministration(store, operator).create({
    slug: 'acme',
    name: 'Acme',
    modules: ['pricing'],
  })
  const { text } = await createKeyAdministration(store, operator).issue({
    partner: 'acme',
    name: 'k',
    environment: 'live',
    expiresAt: Date.now() + HOUR,
  })
  const api = createPartnerApi({ store })
  const codeOf = async () => {
    const answer = await api.fetch(
      new Request('http://a.example/service/public/plans?partner=acme', {
        headers: { 'x-service-partner-key': text },
      }),
    )
    return answer.status === 200 ? 'ok' : (await answer.json()).code
  }
  const found: string[] = []
  for (const ahead of [0, HOUR + 1_000, 0, -10 * HOUR]) {
    clock.ahead = ahead
    found.push(await codeOf())
  }
  t.same(found, ['ok', 'key_expired', 'key_expired', 'key_expired'])
  await api.close()
})

test('the clock never goes back without a store that tells the time', (t) => {
  const clock = settableClock(t)
  fc.assert(fc.property(fc.array(fc.integer({ min: -HOUR, max: HOUR }), { minLength: 2 }), (settings) => {
    const { now, skewMs } = createClock()
    let last = -Infinity
    return settings.every((ahead) => {
      clock.ahead = ahead
      const [before, shown, instant] = [last, Date.now(), now()]
      last = instant
      return instant >= before && instant >= shown && skewMs() === 0
    })
  }))
  t.end()
})

test('the time is the store’s, to within the round trip that it took to learn it', (t) => {
  const answer = fc.record({ there: fc.nat(300), back: fc.nat(300) })
  const anyOffset = fc.oneof(fc.integer({ min: -30 * HOUR, max: 30 * HOUR }), fc.integer({ min: -5, max: 5 }))
  fc.assert(fc.property(anyOffset, fc.array(answer, { minLength: 1, maxLength: 8 }), (offset, answers) => {
    let reading: ClockReading | undefined
    const clock = createClock(() => reading)
    const [start, elapsed] = [Date.now(), performance.now()]
    const storeAt = (at: number) => start + offset + (at - elapsed)
    let at = elapsed
    let shortest = Infinity
    for (const { there, back } of answers) {
      reading = { at: Math.floor(storeAt(at + there)), askedAt: at, answeredAt: at + there + back }
      at += there + back
      shortest = Math.min(shortest, there + back)
      // Two clocks that count whole milliseconds, and the one that this test reads.
      if (Math.abs(clock.now(at) - storeAt(at)) > shortest + 5) return false
    }
    return true
  }))
  t.end()
})

test('servers and commands whose clocks are wrong', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  await t.test('keys end by the clock of the store', (t) => keysEnd(t, server))
  await t.test('a signup is made once', (t) => signupIsMadeOnce(t, server))
  await t.test('a claim ends by no clock but that of the store', (t) => claimHolds(t, server))
})

/** Servers of one store: one is an hour behind, one 25 hours ahead. */
async function serveSkewed(t: Test, server: PostgresServer) {
  const url = await server.createDatabase()
  const run = async (...args: string[]) => {
    const ended = await runProgram([...args, '--json'], { env: { PARTNER_API_STORE: url } })
    t.equal(ended.code, 0, args.join(' '))
    return documentOf(ended)
  }
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'pricing', 'signup')
  const issue = async (...more: string[]): Promise<{ readonly id: string; readonly key: string }> =>
    (await run('keys', 'issue', 'acme', '--name', 'k', ...more)).data
  const serve = (name: string, ms: number) =>
    startServing(['serve', '--port', '0', '--replica-name', name, '--limit', 'key=0'], url, clockAhead(ms))
  const [behind, ahead] = await Promise.all([serve('behind', -HOUR), serve('ahead', 25 * HOUR)])
  const servers: readonly Served[] = [behind, ahead]
  for (const { child } of servers) t.teardown(() => child.kill('SIGKILL'))
  const codes = (text: string): Promise<string[]> =>
    Promise.all(servers.map(async ({ url }) => {
      const headers = { 'X-Service-Partner-Key': text }
      const answer = await fetch(`${url}/service/public/plans?partner=acme`, { headers })
      return answer.status === 200 ? 'ok' : (await answer.json()).code
    }))
  return { url, run, issue, codes, behind, ahead }
}

async function keysEnd(t: Test, server: PostgresServer): Promise<void> {
  const { url, run, issue, codes, behind, ahead } = await serveSkewed(t, server)
  const [ended, overlapping, brief, long, byWrongClock] = await Promise.all([
    issue(),
    issue(),
    issue('--expires', '2s'),
    issue('--expires', '1h'),
    issue(),
  ])
  const both = (code: string) => [code, code]
  t.same(await codes(long.key), both('ok'), 'an hour has not passed for the one that is ahead')
  t.same(await codes(ended.key), both('ok'))
  const { receipt } = await run('keys', 'rotate', ended.id, '--overlap', '0', '--wait')
  t.same(await codes(ended.key), both('key_expired'), 'an end that is now is one by every clock')
  const skews = new Map(receipt.replicas.map(({ name, clock_skew_ms }) => [name, clock_skew_ms]))
  t.ok(Math.abs(skews.get('behind')! + HOUR) < 60_000, `behind by ${skews.get('behind')}`)
  t.ok(Math.abs(skews.get('ahead')! - 25 * HOUR) < 60_000, `ahead by ${skews.get('ahead')}`)
  const env = { PARTNER_API_STORE: url }
  const words = await runProgram(['partners', 'update', 'acme', '--name', 'A', '--wait'], { env })
  t.match(words.stderr, /warning: The clock of behind is \d+ ms behind the store's clock/)
  t.match(words.stderr, /warning: The clock of ahead is \d+ ms ahead of the store's clock/)

  await run('keys', 'rotate', overlapping.id, '--overlap', '1h')
  t.same(await codes(overlapping.key), both('ok'), 'an overlap goes on for the one that is ahead')
  await until(async () => (await codes(brief.key)).join() === both('key_expired').join(), 'a key to expire')
  const rotated = await runProcess(['keys', 'rotate', byWrongClock.id, '--overlap', '1h'], {
    env,
    ...clockAhead(-2 * HOUR),
  })
  t.equal(rotated.code, 0)
  t.same(await codes(byWrongClock.key), both('ok'), 'an overlap is measured by the clock of the store')

  for (const { url } of [behind, ahead]) {
    const { data } = await (await fetch(`${url}/service/health`)).json()
    t.match(data, { status: 'ok', clock_skew_ms: Number })
  }
  for (const served of [behind, ahead]) {
    const { stderr } = await stopServing(served)
    const events = stderr.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
    const told = events.filter(({ event }) => event === 'clock_skew')
    t.match(told, [{ level: 'warn', skew_ms: Number }], 'the log says it once')
  }
  const right = await startServing(['serve', '--port', '0'], url)
  t.teardown(() => right.child.kill('SIGKILL'))
  t.same((await (await fetch(`${right.url}/service/health`)).json()).data, { status: 'ok' })
  const { receipt: quiet } = await run('partners', 'suspend', 'acme', '--wait')
  t.notOk(
    quiet.replicas.some((replica) => 'clock_skew_ms' in replica),
    'a clock that is right is not spoken of',
  )
  t.notMatch((await stopServing(right)).stderr, 'clock_skew')
}

async function signupIsMadeOnce(t: Test, server: PostgresServer): Promise<void> {
  const { issue, behind, ahead } = await serveSkewed(t, server)
  const { key } = await issue()
  const send = async ({ url }: Served) => {
    const answer = await fetch(`${url}/service/partner/signups`, {
      method: 'POST',
      headers: {
        'X-Service-Partner-Key': key,
        'Idempotency-Key': 'once',
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ partner: 'acme', email: 'jo@example.com', name: 'Jo' }),
    })
    t.equal(answer.status, 201)
    return [(await answer.json()).data, answer.headers.get('Idempotent-Replayed')]
  }
  const [first] = await send(behind)
  t.ok(Math.abs(Date.parse(first.created_at) - Date.now()) < 60_000, 'it was made now, as the store has it')
  t.same(await send(ahead), [first, 'true'])
  t.same(await send(behind), [first, 'true'])
}

/** Whatever a program says of the time. */
async function claimHolds(t: Test, server: PostgresServer): Promise<void> {
  const store = await openPostgresStore(await server.createDatabase())
  t.teardown(() => store.close())
  await createPartners(store, 'acme')
  await apply(store, { type: 'key.issued', key: key() })
  const createdAt = Date.now()
  const lasting = claim({ expiresAt: createdAt + DAY })
  await store.createSignup(signup('1', { createdAt }), lasting)
  const later = createdAt + 25 * HOUR
  // Enough of them to clear it away, if it were over.
  for (const id of ['a', 'b']) await store.createSignup(signup(id, { createdAt: later }), undefined)
  const again = await store.createSignup(signup('2', { createdAt: later }), {
    ...lasting,
    expiresAt: later + DAY,
  })
  t.match(again, { outcome: 'replayed', id: signup('1').id })
}
