/** What a receipt says of replicas, whatever kind of store they share. */
import t from 'tap'
import type { ReplicaProgress } from '../../core/ports/replicas.ts'
import { awaitReceipt } from '../../core/replicas/receipt.ts'

const revision = { facts: '2', content: '1' }

/** A store whose replicas are as far as each list says in turn, and from then on as the last one does. */
function storeOf(
  ...lists: readonly (readonly Partial<ReplicaProgress>[])[]
): Parameters<typeof awaitReceipt>[0] {
  let asked = 0
  const progress = () =>
    lists[Math.min(asked++, lists.length - 1)]!.map((replica) => ({
      id: replica.name!,
      name: '',
      applied: false,
      leaseMs: 60_000,
      skewMs: 0,
      ...replica,
    }))
  return { revision: () => revision, replicas: { progress, register: () => t.fail('nobody joins') as never } }
}

t.test('a replica that is listed no more is not waited for, and has not applied anything', async (t) => {
  const receipt = await awaitReceipt(
    storeOf([{ name: 'killed' }, { name: 'slow' }], [{ name: 'slow' }], [{ name: 'slow', applied: true }]),
  )
  t.match(receipt?.replicas, [{ name: 'killed', applied: false }, { name: 'slow', applied: true }])
})

t.test('one that comes later is not waited for', async (t) => {
  const receipt = await awaitReceipt(
    storeOf([{ name: 'old' }], [{ name: 'new' }, { name: 'old', applied: true }]),
  )
  t.match(receipt?.replicas.map(({ name }) => name), ['old'])
})

t.test('one that asks for every request has nothing to apply', async (t) => {
  const receipt = await awaitReceipt(storeOf([{ name: 'asking', leaseMs: 0 }]))
  t.match(receipt?.replicas, [{ name: 'asking', applied: true }])
})

t.test('a store whose replicas nobody lists has no receipt', async (t) => {
  t.equal(await awaitReceipt({ revision: () => revision }), undefined)
})
