import { importKeys } from '../../../core/admin/import-keys.ts'
import type { NewKey } from '../../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../../core/admin/partners.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import { MS_PER_DAY } from '../../../core/lib/time.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Check } from './suites.ts'

const now = Date.UTC(2026, 10, 20)
const day = (days: number) => now + days * MS_PER_DAY
const operator = { actor: 'grace', clock: () => now }

async function administer(store: Store) {
  await createPartnerAdministration(store, operator).create({ slug: 'acme', name: 'Acme', modules: [] })
  const keys = createKeyAdministration(store, operator)
  const issue = (expiresAt: number | undefined, more: Partial<NewKey> = {}) =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', expiresAt, ...more })
  return { keys, issue }
}

async function errorOf(change: Promise<unknown>): Promise<unknown> {
  try {
    return await change
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return [code, /\b30d\b/.test(message)]
  }
}

/** The longest lifetime of keys, a setting of the store. */
export async function lifetimesContract(check: Check): Promise<void> {
  await check(
    'a longest lifetime is set, changed and removed, with an audit entry each',
    async (t, store) => {
      const { keys } = await administer(store)
      t.equal(await store.maxKeyLifetimeMs(), undefined)
      const revisions = [(await store.revision()).facts]
      // The clock is set back in between: the order of the entries counts.
      for (const [ms, at] of [[30, 2], [90, 1], [90, 1], [undefined, 0], [7, 0]] as const) {
        const days = ms && ms * MS_PER_DAY
        await createKeyAdministration(store, { ...operator, clock: () => day(at) }).setMaxLifetime(days)
        t.equal(await store.maxKeyLifetimeMs(), days)
        revisions.push((await store.revision()).facts)
      }
      t.equal(new Set(revisions).size, 5, 'each change moves the revision of facts')
      const entries = (await store.listAudit(0, 10)).filter(({ type }) => type === 'store.updated')
      t.strictSame(
        entries.map(({ before, after, actor }) => [JSON.parse(before!), JSON.parse(after!), actor]),
        [[{}, 30], [30, 90], [90, {}], [{}, 7]].map((states) => [
          ...states.map((days) => typeof days === 'number' ? { maxKeyLifetimeMs: days * MS_PER_DAY } : {}),
          'grace',
        ]),
      )
      for (const ms of [0, 999, 1000.5, -1, 36_526 * MS_PER_DAY, NaN, Infinity]) {
        t.strictSame(await errorOf(keys.setMaxLifetime(ms)), ['invalid_duration', false], `${ms} ms`)
      }
      t.strictSame((await verifyAuditLog(store)).differences, [])
    },
  )

  await check('keys that would end later are refused', async (t, store) => {
    const { keys, issue } = await administer(store)
    const endless = (await issue(undefined)).key
    await keys.setMaxLifetime(30 * MS_PER_DAY)
    const { key } = await issue(day(30))
    for (const expiresAt of [undefined, day(30) + 1]) {
      t.strictSame(await errorOf(issue(expiresAt)), ['invalid_expiry', true], `issued until ${expiresAt}`)
      const update = keys.update(key.id, { expiresAt: expiresAt ?? null })
      t.strictSame(await errorOf(update), ['invalid_expiry', true], `updated until ${expiresAt}`)
    }
    t.strictSame(await errorOf(keys.rotate(key.id, { expiresAt: day(30) + 1 })), ['invalid_expiry', true])
    t.equal((await keys.update(endless.id, { name: 'Other' })).expiresAt, undefined, 'it does not change')
    t.equal((await keys.update(endless.id, { expiresAt: day(30) })).expiresAt, day(30))
    await keys.setMaxLifetime(undefined)
    t.equal((await keys.update(endless.id, { expiresAt: null })).expiresAt, undefined)
  })

  await check('a successor ends with its key, but in time', async (t, store) => {
    const { keys, issue } = await administer(store)
    const issued = [await issue(undefined), await issue(day(365)), await issue(day(10))]
    await keys.setMaxLifetime(30 * MS_PER_DAY)
    const ends = []
    for (const { key: { id } } of issued) ends.push((await keys.rotate(id)).key.expiresAt)
    t.strictSame(ends, [day(30), day(30), day(10)])
    const [{ key }] = issued as [(typeof issued)[number]]
    const { successorId } = await keys.show(key.id)
    const replacing = createKeyAdministration(store, { ...operator, clock: () => now + 1 })
    const again = await replacing.rotate(key.id, { replaces: successorId })
    t.equal(again.key.expiresAt, day(30), 'one that replaces a successor, too')
  })

  await check('imported keys that would end later are errors of their lines', async (t, store) => {
    const { keys } = await administer(store)
    const line = (index: number, expires_at: number | null, name = 'Old') =>
      JSON.stringify({
        partner: 'acme',
        name,
        algorithm: 'sha256',
        digest: store.sha256(String(index)),
        expires_at: expires_at && new Date(expires_at).toISOString(),
      })
    const run = (lines: readonly string[], update = false) => importKeys(store, lines, operator, { update })
    await run([line(1, null)])
    await keys.setMaxLifetime(30 * MS_PER_DAY)
    const refused = await run([line(2, day(30)), line(3, null), line(4, day(31))])
    const fields = 'errors' in refused && refused.errors.map(({ line, field }) => [line, field])
    t.strictSame(fields, [[2, 'expires_at'], [3, 'expires_at']])
    t.ok('lines' in await run([line(2, day(30)), line(1, null)]), 'and keys that exist do not change')
    t.ok('lines' in await run([line(1, null, 'New')], true), 'another name is no later end')
    t.ok('errors' in await run([line(2, day(31))], true), 'an update to a later end is refused')
  })
}
