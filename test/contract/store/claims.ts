/** One-time links (contract, section 13). */
import { createClaim, findClaim, revokeClaim, useClaim } from '../../../core/admin/claims.ts'
import { createPartnerAdministration } from '../../../core/admin/partners.ts'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Store } from '../../../core/ports/store.ts'
import type { Check } from './suites.ts'

const operator = { actor: 'grace' }
const HOUR = 3_600_000
const newKey = { partner: 'acme', name: 'Shop', environment: 'live' } as const

async function createAcme(store: Store) {
  const partners = createPartnerAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme', modules: ['banner'] })
  return partners
}

const claimsOf = async (store: Store, filter = {}) =>
  (await store.listClaims(filter, undefined, 10)).map(({ id }) => id)

export async function claimsContract(check: Check): Promise<void> {
  await check('a claim is used once, with its key, in one change', async (t, store) => {
    await createAcme(store)
    for (const ms of [999, 1_000.5, 30 * 24 * HOUR + 1, NaN]) {
      const code = await createClaim(store, operator, newKey, ms).catch((error) => error.code)
      t.equal(code, 'invalid_duration', `${ms} ms`)
    }
    const { claim, token } = await createClaim(store, operator, { ...newKey, tags: ['a'] }, HOUR)
    t.strictSame(await store.findClaim(claim.id), claim, 'as it was created')
    t.ok(
      claim.digest === store.sha256(token) && !JSON.stringify(claim).includes(token),
      'the token is not stored',
    )
    const before = (await store.revision()).facts
    const attempts = await Promise.allSettled(
      Array.from({ length: 5 }, () => useClaim(store, claim, Date.now)),
    )
    const made = attempts.flatMap((each) => each.status === 'fulfilled' ? each.value.key : [])
    t.equal(made.length, 1, 'one of concurrent attempts')
    t.ok((await store.revision()).facts !== before, 'the revision of facts moves')
    t.strictSame(await store.findClaim(claim.id), { ...claim, state: 'used', keyId: made[0]!.id })
    t.strictSame((await store.findKey(made[0]!.id))?.key, made[0])
    const entries = (await store.listAudit(0, 10)).slice(1)
    t.strictSame(
      entries.map(({ type, actor, subject }) => [type, actor, subject]),
      [
        ['claim.created', 'grace', claim.id],
        ['claim.used', `claim:${claim.id}`, claim.id],
        ['key.issued', `claim:${claim.id}`, undefined],
      ],
    )
    t.ok(!JSON.stringify(entries).includes(claim.digest), 'no entry has the digest')
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })

  await check('a removed partner has no open claims, and lists select them', async (t, store) => {
    const partners = await createAcme(store)
    await partners.create({ slug: 'globex', name: 'Globex', modules: [] })
    const ids: string[] = []
    const make = async (partner: string, createdAt: number) => {
      const { claim } = await createClaim(store, { ...operator, clock: () => createdAt }, {
        ...newKey,
        partner,
      }, HOUR)
      ids.push(claim.id)
    }
    const now = Date.now()
    for (const [partner, age] of [['acme', 2 * HOUR], ['acme', 3], ['globex', 2], ['acme', 1]] as const) {
      await make(partner, now - age)
    }
    t.strictSame(await claimsOf(store), ids, 'oldest first')
    t.strictSame(await claimsOf(store, { partner: 'acme' }), [ids[0], ids[1], ids[3]])
    t.strictSame(await claimsOf(store, { openAt: now }), ids.slice(1), 'those that have not expired')
    const second = await findClaim(store, ids[1]!)
    t.strictSame((await store.listClaims({}, second, 1)).map(({ id }) => id), [ids[2]], 'after a row')
    await revokeClaim(store, operator, ids[3]!)
    await partners.remove('acme')
    t.strictSame(await claimsOf(store, { openAt: now }), [ids[2]], 'another partner keeps its own')
    t.equal((await findClaim(store, ids[1]!)).state, 'revoked')
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })
}
