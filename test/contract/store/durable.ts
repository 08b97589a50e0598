import { verifyChain } from '../../../core/audit/verify.ts'
import { utcDay } from '../../../core/lib/time.ts'
import type { Store } from '../../../core/ports/store.ts'
import {
  apply,
  createPartners,
  key,
  partner,
  profile,
  publish,
  query,
  reservation,
  signup,
  stamp,
  T0,
} from './samples.ts'
import type { TestContext } from './suites.ts'

/** Opens a store, which is created if necessary. */
export type OpenDurable = (options?: { readonly keyPrefix?: string }) => Promise<Store>

/**
 * The contract of a store that can be reopened, and opened several times.
 *
 * @param create Returns how to open a new store.
 */
export async function durableContract(t: TestContext, create: () => Promise<OpenDurable>): Promise<void> {
  await t.test('a reopened store has the same settings, revision and data', async (t) => {
    const open = await create()
    const first = await open()
    await createPartners(first, 'acme')
    await apply(first, { type: 'key.issued', key: key() })
    await publish(first, [profile('a')])
    const { settings } = first
    const revision = await first.revision()
    await first.close()
    const second = await open()
    t.strictSame(second.settings, settings)
    t.strictSame(await second.revision(), revision)
    t.strictSame(await second.findKey(key().id), { key: key(), partner: partner({ slug: 'acme' }) })
    t.equal((await second.listProfiles('acme', query(), T0)).length, 1)
    await second.close()
  })

  await t.test('two connections see each other’s commits immediately', async (t) => {
    const open = await create()
    const a = await open()
    const b = await open()
    t.strictSame(await a.revision(), await b.revision())
    for (const [index, [writer, reader]] of [[a, b], [b, a], [a, b]].entries()) {
      const before = await reader!.revision()
      await createPartners(writer!, `p${index}`)
      t.ok((await reader!.revision()).facts !== before.facts, 'the revision of facts has changed')
      t.equal((await reader!.revision()).content, before.content)
      t.strictSame(await reader!.revision(), await writer!.revision())
      await publish(writer!, [profile(`p${index}`)])
      t.ok((await reader!.revision()).content !== before.content, 'the revision of content has changed')
      t.strictSame(await reader!.revision(), await writer!.revision())
      t.equal(
        await verifyChain(reader!, reader!.sha256),
        undefined,
        'the log continues after the other’s entries',
      )
    }
    for (const store of [a, b]) t.equal((await store.listProfiles('acme', query(), T0)).length, 3)
    const { facts } = await b.revision()
    t.equal(await a.apply([{ type: 'partner.suspended', slug: 'p0' }], facts, stamp), true)
    t.equal(await b.apply([{ type: 'partner.resumed', slug: 'p0' }], facts, stamp), false)
    await a.close()
    await b.close()
  })

  await t.test('signups that wait when their store is closed are stored or rejected', async (t) => {
    const open = await create()
    const first = await open()
    const second = await open()
    await createPartners(first, 'acme')
    await apply(first, { type: 'key.issued', key: key() })
    const sent = Promise.allSettled(Array.from({ length: 250 }, async (_, index) => {
      const one = signup(`${index}`, { country: 'DE' })
      await first.createSignup(one, reservation({ key: one.id }))
      return one.id
    }))
    // The first group is on its way then.
    await new Promise((resolve) => setTimeout(resolve))
    await first.close()
    const created = (await sent).flatMap((each) => each.status === 'fulfilled' ? [each.value] : [])
    const stored = (await second.listSignups(undefined, undefined, 1000)).map(({ id }) => id)
    t.strictSame(stored.toSorted(), created.sort(), `${created.length} of 250`)
    const { signupsByCountry } = await second.summarise('acme', utcDay(T0), utcDay(T0))
    const expected = created.length > 0 ? [{ country: 'DE', signups: created.length }] : []
    t.strictSame(signupsByCountry, expected)
    await second.close()
  })

  await t.test('two stores have different revisions and secrets', async (t) => {
    const a = await (await create())()
    const b = await (await create())()
    const revision = await a.revision()
    const other = await b.revision()
    t.ok(revision.facts !== other.facts, 'revisions of facts')
    t.ok(revision.content !== other.content, 'revisions of content')
    t.ok(a.settings.cursorSecret !== b.settings.cursorSecret, 'secrets')
    await a.close()
    await b.close()
  })

  await t.test('the key prefix can be changed until the first key is issued', async (t) => {
    const open = await create()
    const settingsOf = async (keyPrefix?: string) => {
      const store = await open(keyPrefix === undefined ? {} : { keyPrefix })
      await store.close()
      return store.settings
    }
    const errorOf = (keyPrefix: string) =>
      settingsOf(keyPrefix).then(String, ({ code, message }) => `${code}: ${message}`)
    const first = await settingsOf('first')
    t.equal(first.keyPrefix, 'first')
    t.strictSame(await settingsOf(), first)
    t.strictSame(await settingsOf('last'), { ...first, keyPrefix: 'last' })
    const store = await open()
    await createPartners(store, 'acme')
    await apply(store, { type: 'key.issued', key: key() })
    await store.close()
    t.strictSame(await settingsOf('last'), { ...first, keyPrefix: 'last' })
    const inUse = await errorOf('other')
    t.ok(/^refused: .*cannot become other: it holds keys that begin with last/.test(inUse), inUse)
    const malformed = await errorOf('Other')
    t.ok(/^refused: .*2 to 10 lower-case/.test(malformed), malformed)
    t.strictSame(await settingsOf(), { ...first, keyPrefix: 'last' })
  })
}
