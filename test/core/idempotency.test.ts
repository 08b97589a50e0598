/** Sections 4 and 10, signups: the same body twice. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import { deployTo } from '../contract/http/deploy.ts'
import { forge } from '../contract/http/forgery.ts'
import { onNode } from '../contract/http/mounts.ts'
import { type Heard, post, type Tester } from '../contract/http/service.ts'
import { memory, sqliteFile } from '../contract/http/stores.ts'
import { type More, places, serveStore, withService } from '../support/partner-service.ts'

const path = '/partner/signups'
const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }
const idempotent = (key: string): More => ({ headers: { 'idempotency-key': key } })

async function kept(store: Store, partner = 'demo'): Promise<readonly Signup[]> {
  return await store.listSignups(partner, undefined, 10_000)
}

function refused(t: Tester, heard: Heard, pointers: readonly string[], what: string): void {
  t.strictSame(
    [heard.status, heard.json.code, places(heard)],
    [422, 'invalid_body', [...pointers].sort()],
    what,
  )
}

for (const [name, open] of Object.entries({ memory, sqlite: sqliteFile })) {
  await t.test(`${name}: tells a repetition from something new`, (t) =>
    withService(open, async ({ store, post }) => {
      const body = { ...required, country: 'DE', metadata: { b: '2', a: 'é' } }
      const first = await post(path, body, idempotent('one'))
      t.equal(first.status, 201)
      t.notOk(first.headers.has('idempotent-replayed'))
      const same = [
        JSON.stringify(body),
        ' {"name":"Ada Lovelace","email":"ada@example.com","partner":"demo",\n' +
        '"metadata":{"\\u0061":"\\u00e9","b":"2"},"country":"DE"}',
      ]
      for (const text of same) {
        const again = await post(path, text, idempotent('one'))
        t.strictSame([again.status, again.text], [201, first.text], 'the same answer')
        t.equal(again.headers.get('idempotent-replayed'), 'true')
        t.equal(again.headers.get('cache-control'), 'no-store')
      }
      const others = [
        { ...body, name: 'Ada' },
        { ...body, country: 'de' },
        { ...body, company: null },
        { ...body, metadata: { b: '2' } },
        required,
      ]
      for (const other of others) {
        const heard = await post(path, other, idempotent('one'))
        t.strictSame([heard.status, heard.json.code], [422, 'idempotency_mismatch'], JSON.stringify(other))
        t.notOk('errors' in heard.json)
      }
      t.equal((await kept(store)).length, 1, 'one is kept')
      const test = await post(path, body, { key: 'demo test', ...idempotent('one') })
      t.notOk(test.headers.has('idempotent-replayed'), 'test keys have keys of their own')
      const acme = await post(path, { ...body, partner: 'acme' }, {
        key: 'acme full',
        ...idempotent('one'),
      })
      t.strictSame(
        [acme.status, acme.headers.has('idempotent-replayed')],
        [201, false],
        'as has each partner',
      )
    }))

  await t.test(`${name}: two hundred at once make one`, (t) =>
    withService(open, async ({ store, post }) => {
      const answers = await Promise.all(
        Array.from({ length: 200 }, () => post(path, required, idempotent('crowd'))),
      )
      const news = answers.filter(({ status, headers }) =>
        status === 201 && !headers.has('idempotent-replayed')
      )
      const rest = answers.filter(({ status, headers, json }) =>
        headers.get('idempotent-replayed') === 'true' && status === 201 ||
        json.code === 'idempotency_conflict'
      )
      t.strictSame([news.length, rest.length, (await kept(store)).length], [1, 199, 1])
    }))
}

await t.test('is kept with a 201 only', (t) =>
  withService(memory, async ({ store, post }) => {
    refused(t, await post(path, { ...required, email: 'x' }, idempotent('fix')), ['/email'], 'a refusal')
    t.equal((await post(path, { ...required, partner: 'acme' }, idempotent('fix'))).status, 403)
    const corrected = await post(path, required, idempotent('fix'))
    t.strictSame([corrected.status, corrected.headers.has('idempotent-replayed')], [201, false])
    t.equal((await kept(store)).length, 1)
  }))

await t.test('is judged after the body', (t) =>
  withService(memory, async ({ post }) => {
    t.equal((await post(path, required, idempotent('late'))).status, 201)
    refused(
      t,
      await post(path, { ...required, email: 'x' }, idempotent('late')),
      ['/email'],
      'step 12 first',
    )
  }))

await t.test('holds for 24 hours', (t) =>
  withService(memory, async ({ post }) => {
    const real = Date.now
    const start = real()
    const at = async (ms: number) => {
      Date.now = () => start + ms
      const heard = await post(path, required, idempotent('day'))
      return [heard.status, heard.headers.has('idempotent-replayed')]
    }
    try {
      const [minute, day] = [60_000, 86_400_000]
      t.strictSame(await at(0), [201, false])
      t.strictSame(await at(day - minute), [201, true], 'until then')
      // Time goes on between the requests: to the millisecond it is said of the store.
      t.strictSame(await at(day + minute), [201, false], 'and no longer')
      t.strictSame(await at(2 * day), [201, true], 'from when it was used anew')
    } finally {
      Date.now = real
    }
  }))

await t.test('is bare or quoted', (t) =>
  withService(memory, async ({ post }) => {
    const replayed = async (key: string) => {
      const heard = await post(path, required, idempotent(key))
      return heard.status === 201 ? heard.headers.has('idempotent-replayed') : heard.json.code
    }
    const uuid = '8e03978e-40d5-43dd-bc93-6894a57f9324'
    const long = 'x'.repeat(255)
    const marks = `!#$%&'()*+,-./:;<=>?@[]^_\`{|}~`
    for (const [bare, quoted] of [[uuid, `"${uuid}"`], [`"${long}"`, long], [marks, `"${marks}"`]]) {
      t.strictSame([await replayed(bare!), await replayed(quoted!)], [false, true], `${bare?.slice(0, 40)}`)
    }
    t.strictSame(
      [await replayed('a\\b'), await replayed('"a\\\\b"')],
      [false, true],
      'an escaped backslash',
    )
    t.strictSame([await replayed('a"b"c'), await replayed('"a\\"b\\"c"')], [false, true], 'escaped quotes')
    t.strictSame([await replayed('"x, y"'), await replayed('"x, y"')], [false, true], 'a quoted comma')
    t.strictSame([await replayed('Case'), await replayed('case')], [false, false], 'case counts')
    const key = forge('spk_live', 'Nobody000000')
    const wrong = ['', '""', '"', '"a', 'a"', 'a"b', '"a"b', '"a\\"', '"a\\b"', '"a" "b"', 'x'.repeat(256)]
    wrong.push(`"${'x'.repeat(256)}"`, 'é', '"é"', 'a\tb', 'a, b', 'a, a', '"a", "a"', key, `"${key}"`)
    for (const value of wrong) {
      const heard = await post(path, required, idempotent(value))
      t.strictSame(
        [heard.status, heard.json.code, places(heard)],
        [400, 'invalid_parameter', ['Idempotency-Key']],
        JSON.stringify(value.slice(0, 40)),
      )
    }
    const twice = await post(path, required, { headers: { 'idempotency-key': ['a', 'a'] } })
    t.strictSame([twice.status, places(twice)], [400, ['Idempotency-Key']], 'a repeated field')
    const elsewhere = await post('/developer/verify-key', { partner: 'demo' }, idempotent(''))
    t.equal(elsewhere.status, 200, 'other endpoints do not look at it')
  }))

await t.test('is the same for equal JSON, and for nothing else', (t) =>
  withService(memory, async ({ post }) => {
    const metadata = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 8 }),
      fc.string({ maxLength: 8 }),
      { maxKeys: 6 },
    ).filter((pairs) => !JSON.stringify(pairs).includes('\\u0000'))
    await fc.assert(
      fc.asyncProperty(metadata, metadata, async (one, other) => {
        const key = idempotent(randomBytes(8).toString('hex'))
        const shuffled = Object.fromEntries(Object.entries(one).reverse())
        t.equal((await post(path, { ...required, metadata: one }, key)).status, 201)
        const again = await post(path, { metadata: shuffled, ...required }, key)
        const third = await post(path, { ...required, metadata: other }, key)
        const sorted = (pairs: object) => JSON.stringify(Object.entries(pairs).sort())
        return again.headers.has('idempotent-replayed') &&
          third.status === (sorted(one) === sorted(other) ? 201 : 422)
      }),
      { numRuns: 60 },
    )
  }))

await t.test('what the store says of a running attempt is 409', async (t) => {
  const store = createMemoryStore()
  const service = await serveStore({ ...store, createSignup: () => ({ outcome: 'conflict' }) })
  const heard = await service.post(path, required, idempotent('x'))
  t.strictSame([heard.status, heard.json.code], [409, 'idempotency_conflict'])
  await service.api.close()
})

await t.test('over a socket, a repeated field is refused and a key is replayed', (t) =>
  deployTo(memory, onNode)({}, async (service) => {
    const send = (key: string | readonly string[]) =>
      post(service, JSON.stringify(required), {
        target: `/service${path}`,
        headers: { 'idempotency-key': key },
      })
    t.equal((await send('a')).status, 201)
    t.equal((await send('"a"')).headers.get('idempotent-replayed'), 'true')
    t.equal((await send('one, field')).status, 201)
    t.equal((await send('"one, field"')).headers.get('idempotent-replayed'), 'true')
    for (const twice of [['a', 'a'], ['"a"', '"a"'], ['"a', 'b"'], ['', 'a'], ['a', '']]) {
      t.strictSame(places(await send(twice)), ['Idempotency-Key'], JSON.stringify(twice))
    }
  }))
