/** Sections 4 and 10, signups: every field, and every failure at once. */
import t from 'tap'
import { createMemoryStore } from '../adapters/stores/memory/store.ts'
import type { Store } from '../core/ports.ts'
import type { Signup } from '../core/signups/signup.ts'
import { memory, sqliteFile } from './contract/http/stores.ts'
import type { Heard, Tester } from './contract/http/service.ts'
import { type More, places, serveStore, withService } from './partner-service.ts'
import { FORGED_KEY, pairs, REFUSED, TAKEN } from './signup-fields.ts'

const path = '/partner/signups'
const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }

async function kept(store: Store, partner = 'demo'): Promise<readonly Signup[]> {
  return await store.listSignups(partner, undefined, 10_000)
}

async function keptOf(store: Store, heard: Heard): Promise<Signup | undefined> {
  return (await kept(store)).find(({ id }) => id === heard.json.data.id)
}

function refused(t: Tester, heard: Heard, pointers: readonly string[], what: string): void {
  t.strictSame(
    [heard.status, heard.json.code, places(heard)],
    [422, 'invalid_body', [...pointers].sort()],
    what,
  )
}

for (const [name, open] of Object.entries({ memory, sqlite: sqliteFile })) {
  await t.test(`${name}: a signup is kept as it was sent`, (t) =>
    withService(open, async ({ store, post, world }) => {
      const before = Date.now()
      const heard = await post(path, {
        ...required,
        company: 'Analytical Engines',
        country: 'gB',
        plan: 'starter',
        profile: 'universite-de-valmorne',
        locale: 'en-GB',
        message: 'Zeile 1\nZeile 2 😀',
        consent_at: '2026-02-28T23:59:59.5+01:00',
        metadata: { 'utm source': 'x', 'empty': '' },
      })
      t.equal(heard.status, 201)
      const { id, status, created_at: createdAt, ...rest } = heard.json.data
      t.match(id, /^sgn_[0-9A-Za-z]{20}$/)
      t.strictSame([status, rest, Object.keys(heard.json)], ['received', {}, ['data']])
      t.ok(Date.parse(createdAt) >= before && Date.parse(createdAt) <= Date.now(), 'created_at is now')
      t.equal(heard.headers.get('cache-control'), 'no-store')
      t.equal(heard.headers.get('content-type'), 'application/json; charset=utf-8')
      t.notOk(heard.headers.has('idempotent-replayed'))
      t.match(heard.headers.get('ratelimit-policy'), /^"key";.*, "signup";/, 'both policies are met')
      t.strictSame(await keptOf(store, heard), {
        id,
        partner: 'demo',
        keyId: world.keys['demo full'].id,
        environment: 'live',
        createdAt: Date.parse(createdAt),
        email: 'ada@example.com',
        name: 'Ada Lovelace',
        company: 'Analytical Engines',
        country: 'GB',
        plan: 'starter',
        profile: 'universite-de-valmorne',
        locale: 'en-GB',
        message: 'Zeile 1\nZeile 2 😀',
        consentAt: Date.UTC(2026, 1, 28, 22, 59, 59, 500),
        metadata: { 'utm source': 'x', 'empty': '' },
      })
      const bare = await post(path, {
        ...required,
        company: null,
        country: null,
        plan: null,
        profile: null,
        locale: null,
        message: null,
        consent_at: null,
        metadata: null,
      })
      t.equal(bare.status, 201, 'null is absent')
      const { company, country, plan, profile, locale, message, consentAt, metadata } =
        (await keptOf(store, bare))!
      t.strictSame(
        [company, country, plan, profile, locale, message, consentAt, metadata],
        [undefined, undefined, undefined, undefined, undefined, undefined, undefined, {}],
      )
      const test = await post(path, required, { key: 'demo test' })
      t.equal((await keptOf(store, test))?.environment, 'test', 'a test key makes tests')
      t.not(bare.json.data.id, heard.json.data.id, 'without a key each is another')
    }))
}

await t.test('each field has its rule', (t) =>
  withService(memory, async ({ store, post }) => {
    for (const [field, values] of TAKEN) {
      for (const value of values) {
        const heard = await post(path, { ...required, [field]: value })
        t.equal(heard.status, 201, `${field}: ${JSON.stringify(value).slice(0, 60)}`)
        if (field === 'metadata') {
          const { metadata } = (await keptOf(store, heard))!
          t.strictSame(Object.entries(metadata), Object.entries(value as object), 'every pair is kept')
        }
      }
    }
    const count = (await kept(store)).length
    for (const [field, values] of REFUSED) {
      for (const value of values) {
        const heard = await post(path, { ...required, [field]: value })
        refused(t, heard, [`/${field}`], `${field}: ${JSON.stringify(value)?.slice(0, 60)}`)
      }
    }
    const members: readonly (readonly [metadata: object | string, pointers: readonly string[]])[] = [
      [{ a: 1, b: null, c: ['x'], d: 'fine' }, ['/metadata/a', '/metadata/b', '/metadata/c']],
      [{ a: 'x'.repeat(501), ['x'.repeat(41)]: 'y' }, ['/metadata/a', `/metadata/${'x'.repeat(41)}`]],
      [{ '': 'x', 'a/b~c': 1 }, ['/metadata/', '/metadata/a~1b~0c']],
      [{ 'a\0': 'x', 'b': '\0', 'c': FORGED_KEY }, ['/metadata/a\0', '/metadata/b', '/metadata/c']],
      [{ [FORGED_KEY]: 'x' }, ['/metadata/[redacted]']],
      ['{"__proto__":1,"constructor":2}', ['/metadata/__proto__', '/metadata/constructor']],
      [{ ...pairs(21), k0: 0 }, ['/metadata', '/metadata/k0']],
    ]
    for (const [metadata, pointers] of members) {
      const body = typeof metadata === 'string'
        ? `${JSON.stringify(required).slice(0, -1)},"metadata":${metadata}}`
        : { ...required, metadata }
      refused(t, await post(path, body), pointers, `metadata: ${JSON.stringify(metadata).slice(0, 60)}`)
    }
    t.equal((await kept(store)).length, count, 'nothing that was refused is kept')
  }))

await t.test('all failures at once', (t) =>
  withService(memory, async ({ post }) => {
    const wrong = {
      partner: 'demo',
      company: 1,
      country: 'xx',
      plan: 'nothing',
      profile: 'for-acme',
      locale: '',
      message: 'x'.repeat(2001),
      consent_at: 'x',
      metadata: { a: 1 },
      other: 1,
      Name: 'x',
    }
    const pointers = [
      '/Name',
      '/company',
      '/consent_at',
      '/country',
      '/email',
      '/locale',
      '/message',
      '/metadata/a',
      '/name',
      '/other',
      '/plan',
      '/profile',
    ]
    refused(t, await post(path, wrong), pointers, 'of the body, those that the store tells included')
    refused(
      t,
      await post(path, { ...required, [FORGED_KEY]: 1 }),
      ['/[redacted]'],
      'a key as a name is not said',
    )
    const parameters = await post(`${path}?x=1&partner=demo`, wrong, { headers: { 'idempotency-key': '' } })
    t.strictSame(
      [parameters.status, parameters.json.code, places(parameters)],
      [400, 'invalid_parameter', ['Idempotency-Key', 'partner', 'x']],
      'parameters come before the body',
    )
    const hidden = await post(path, { ...required, profile: 'for-acme' })
    const absent = await post(path, { ...required, profile: 'for-abcd' })
    t.strictSame(hidden.json.errors, absent.json.errors, 'a hidden profile is as one that does not exist')
    const shared = await post(path, { ...required, partner: 'acme', profile: 'for-acme' }, {
      key: 'acme full',
    })
    t.equal(shared.status, 201, 'and is there for whom it is shared with')
  }))

await t.test('who may', (t) =>
  withService(memory, async ({ post, ask }) => {
    const cases: readonly (readonly [body: object, more: More, code: string])[] = [
      [required, { key: 'demo profiles' }, 'scope_missing'],
      [{ ...required, partner: 'acme' }, {}, 'partner_mismatch'],
      [{ ...required, partner: null }, {}, 'partner_missing'],
      [required, { headers: { 'content-type': 'text/plain' } }, 'unsupported_media_type'],
      [{ ...required, message: 'x'.repeat(33_000) }, {}, 'body_too_large'],
    ]
    for (const [body, more, code] of cases) t.equal((await post(path, body, more)).json.code, code, code)
    t.equal((await ask(path)).headers.get('allow'), 'POST, OPTIONS')
  }))

await t.test('a store that fails is 503, and nothing is kept', async (t) => {
  const store = createMemoryStore()
  const failing: Store = {
    ...store,
    createSignup: () => {
      throw new Error('the disk is full of ada@example.com')
    },
  }
  const service = await serveStore(failing)
  const heard = await service.post(path, required)
  t.strictSame([heard.status, heard.json.code], [503, 'store_unavailable'])
  t.match(heard.headers.get('retry-after'), /^\d+$/)
  t.notMatch(heard.text, /disk|ada@/)
  await service.api.close()
})

await t.test('both quotas are spent, and the smaller one refuses', (t) =>
  withService(
    memory,
    async ({ post, store }) => {
      for (let count = 0; count < 2; count++) t.equal((await post(path, required)).status, 201)
      const heard = await post(path, required)
      t.strictSame([heard.status, heard.json.code], [429, 'rate_limited'])
      t.match(heard.headers.get('ratelimit'), /^"key";r=5;t=\d+, "signup";r=0;t=\d+$/)
      t.ok(Number(heard.headers.get('retry-after')) >= 1)
      t.equal((await kept(store)).length, 2)
    },
    { limits: { key: { quota: 8, windowSeconds: 60 }, signup: { quota: 2, windowSeconds: 60 } } },
  ))
