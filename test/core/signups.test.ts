/** Sections 4 and 10, signups: what is kept of them, and what becomes of them when the store fails. */
import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import type { Signup } from '../../core/ports/signups.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Heard } from '../contract/http/service.ts'
import { memory, sqliteFile } from '../contract/http/stores.ts'
import { serveStore, withService } from '../support/partner-service.ts'

const path = '/partner/signups'
const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }

async function kept(store: Store, partner = 'demo'): Promise<readonly Signup[]> {
  return await store.listSignups(partner, undefined, 10_000)
}

async function keptOf(store: Store, heard: Heard): Promise<Signup | undefined> {
  return (await kept(store)).find(({ id }) => id === heard.json.data.id)
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
