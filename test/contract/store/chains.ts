/** Chains of rotations: which keys are in force, and whether anyone else has changed one. */
import { createKeyAdministration } from '../../../core/admin/keys.ts'
import type { Key } from '../../../core/model.ts'
import { apply, createPartners, DAY, key, T0 } from './samples.ts'
import type { Check } from './suites.ts'

export async function chainsContract(check: Check): Promise<void> {
  await check('a chain has the keys in force that follow from one by rotations', async (t, store) => {
    await createPartners(store, 'acme')
    const keyOf = (id: string, more: Partial<Key> = {}) =>
      ({ type: 'key.issued', key: key({ id, partner: 'acme', createdAt: T0, ...more }) }) as const
    await apply(
      store,
      keyOf('root'),
      keyOf('ended', { predecessorId: 'root', retiresAt: T0 + 5 }),
      keyOf('former', { predecessorId: 'ended', createdAt: T0 + 1, retiresAt: T0 + 20 }),
      keyOf('next', { predecessorId: 'ended', createdAt: T0 + 2 }),
      keyOf('revoked', { predecessorId: 'next', createdAt: T0 + 3, state: 'revoked' }),
      keyOf('disabled', { predecessorId: 'next', createdAt: T0 + 3, state: 'disabled' }),
      keyOf('last', { predecessorId: 'revoked', createdAt: T0 + 4, expiresAt: T0 + 30 }),
      keyOf('stranger'),
      keyOf('kept', { createdAt: T0 - DAY, retiresAt: T0 + 40 }),
      keyOf('old', { predecessorId: 'kept' }),
    )
    const ids = async (id: string, since: number, now: number) =>
      (await store.listChain(id, since, now)).map((each) => each.id)
    for (const id of ['root', 'ended', 'next', 'last']) {
      t.strictSame(await ids(id, T0 - DAY, T0 + 10), ['root', 'former', 'next', 'last'], id)
    }
    t.strictSame(await ids('stranger', T0 - DAY, T0 + 10), ['stranger'])
    t.strictSame(await ids('last', T0 - DAY, T0 + 20), ['root', 'next', 'last'], 'an overlap has ended')
    t.strictSame(await ids('last', T0 - DAY, T0 + 30), ['root', 'next'], 'a key has expired')
    t.strictSame(await ids('last', T0 + 2, T0 + 10), ['next', 'last'], 'back to the first made by then')
    t.strictSame(
      await ids('old', T0 + 2, T0 + 10),
      ['kept', 'old'],
      'and further to one with a longer overlap',
    )
  })

  await check(
    'a change of a key by anyone else is known, and its issue and uses are none',
    async (t, store) => {
      await createPartners(store, 'acme')
      const administer = (actor: string) => createKeyAdministration(store, { actor, clock: () => T0 })
      const issued = { partner: 'acme', name: 'Shop', environment: 'live' } as const
      const { key: { id } } = await administer('ops').issue(issued)
      await administer('ops').disable((await administer('ops').issue(issued)).key.id)
      t.equal(await store.wasChangedByOthers(id, 'key:one'), false)
      await store.recordKeyUses(new Map([[id, T0]]))
      await administer('key:one').update(id, { name: 'Other' })
      t.equal(await store.wasChangedByOthers(id, 'key:one'), false)
      t.equal(await store.wasChangedByOthers(id, 'key:two'), true)
      await administer('ops').update(id, { name: 'Another' })
      t.equal(await store.wasChangedByOthers(id, 'key:one'), true)
    },
  )
}
