import type { Revision } from '../../../core/ports/facts.ts'
import type { Replica, ReplicaProgress } from '../../../core/ports/replicas.ts'
import type { Store } from '../../../core/ports/store.ts'
import { until } from '../../postgres/until.ts'
import { actor, createPartners, industry, T0 } from './samples.ts'
import type { SharedCheck } from './suites.ts'

/** A replica that confirms the revision of its store every few milliseconds. */
function replica(store: Store, more: Partial<Replica> = {}): Replica {
  return {
    name: 'one',
    leaseMs: 60_000,
    revalidateEveryMs: 5,
    revalidate: async () => await store.revision(),
    skewMs: () => 0,
    ...more,
  }
}

/** The progress of each replica by name, without ids, which the store generates. */
async function progressOf(
  store: Store,
  revision?: Revision,
): Promise<Pick<ReplicaProgress, 'name' | 'applied' | 'leaseMs'>[]> {
  const progress = await store.replicas.progress(revision ?? await store.revision())
  return progress.map(({ name, applied, leaseMs }) => ({ name, applied, leaseMs }))
    .sort((a, b) => a.name < b.name ? -1 : 1)
}

const hasApplied = async (store: Store, revision: Revision): Promise<boolean> =>
  (await progressOf(store, revision)).every(({ applied }) => applied)

/** The registry of replicas. */
export async function replicasContract(check: SharedCheck): Promise<void> {
  await check('a replica is listed from its registration until it deregisters', async (t, open) => {
    const a = await open()
    const b = await open()
    let confirmed = 0
    const confirm = async () => {
      confirmed++
      return await a.revision()
    }
    const member = a.replicas.register(replica(a, { name: 'first', leaseMs: 1234, revalidate: confirm }))
    t.equal(member.replicaCount(), 1)
    t.strictSame(await progressOf(b), [])
    t.equal(confirmed, 0, 'it confirms nothing before it registers')
    const joining = member.registered()
    t.ok(joining instanceof Promise, 'the first call waits for the store')
    t.equal(await joining, undefined)
    t.strictSame((await progressOf(b)).map(({ name, leaseMs }) => [name, leaseMs]), [['first', 1234]])
    t.equal(member.registered(), undefined, 'later calls are synchronous')
    await until(() => confirmed > 2, 'the replica to confirm periodically')
    await member.deregister()
    const before = confirmed
    t.strictSame(await progressOf(b), [])
    await b.revision()
    t.equal(confirmed, before, 'it confirms no more')
    await member.deregister()
  })

  await check('concurrent registrations of a replica register it once', async (t, open) => {
    const store = await open()
    const member = store.replicas.register(replica(store))
    await Promise.all([member.registered(), member.registered(), member.registered()])
    t.equal((await progressOf(store)).length, 1)
    const other = store.replicas.register(replica(store))
    await other.registered()
    const ids = (await store.replicas.progress(await store.revision())).map(({ id }) => id)
    t.equal(new Set(ids).size, 2, 'two replicas of one name have different ids')
    await Promise.all([member.deregister(), other.deregister()])
  })

  await check(
    'a replica that deregisters before or during its registration is not listed',
    async (t, open) => {
      const store = await open()
      await store.replicas.register(replica(store)).deregister()
      t.strictSame(await progressOf(store), [])
      const member = store.replicas.register(replica(store))
      const joining = Promise.resolve(member.registered()).catch(() => undefined)
      await member.deregister()
      await joining
      t.strictSame(await progressOf(store), [])
    },
  )

  await check('a change is applied by replicas that have confirmed it or a later one', async (t, open) => {
    const a = await open()
    const b = await open()
    let answer: Promise<Revision> | undefined
    const slow = a.replicas.register(
      replica(a, { name: 'slow', revalidate: async () => await (answer ?? a.revision()) }),
    )
    const quick = b.replicas.register(replica(b, { name: 'quick' }))
    await Promise.all([slow.registered(), quick.registered()])
    const start = await b.revision()
    await until(() => hasApplied(b, start), 'both to have applied the current revision')

    const held = Promise.withResolvers<Revision>()
    answer = held.promise
    await createPartners(b, 'acme')
    const first = await b.revision()
    const quickHas = async (revision: Revision) => (await progressOf(b, revision))[0]?.applied === true
    await until(() => quickHas(first), 'the quick one to have applied the change')
    t.strictSame((await progressOf(b, first)).map(({ name, applied }) => [name, applied]), [
      ['quick', true],
      ['slow', false],
    ])
    await b.importContent('industries', [industry('education')], { now: T0, actor })
    const second = await b.revision()
    await until(() => quickHas(second), 'the quick one to have applied the next change')
    held.resolve(first)
    await until(() => hasApplied(b, first), 'the slow one to have applied the first change')
    // The slow one still confirms the first change.
    t.strictSame(
      (await progressOf(b, second)).map(({ applied }) => applied),
      [true, false],
      'the slow one has not applied the second',
    )
    answer = undefined
    await until(() => hasApplied(b, second), 'both to have applied both')
    t.ok(await hasApplied(b, first), 'a later revision includes the earlier change')
    await Promise.all([slow.deregister(), quick.deregister()])
  })

  await check('a replica that fails to confirm stays listed and retries', async (t, open) => {
    const store = await open()
    let failures = 0
    let isFailing = true
    const member = store.replicas.register(replica(store, {
      revalidate: async () => {
        if (!isFailing) return await store.revision()
        failures++
        throw new Error('out of order')
      },
    }))
    await member.registered()
    await until(() => failures > 3, 'several confirmations to fail')
    t.strictSame((await progressOf(store)).map(({ applied }) => applied), [false])
    isFailing = false
    const revision = await store.revision()
    await until(() => hasApplied(store, revision), 'the replica to recover')
    await member.deregister()
  })

  await check('each replica learns the number of replicas', async (t, open) => {
    const a = await open()
    const b = await open()
    const [first, second, third] = [replica(a), replica(b), replica(b)].map((one, index) =>
      [a, b, b][index]!.replicas.register(one)
    ) as [Member, Member, Member]
    await first.registered()
    t.equal(first.replicaCount(), 1)
    await Promise.all([second.registered(), third.registered()])
    await until(() => [first, second, third].every((one) => one.replicaCount() === 3), 'all to count three')
    await third.deregister()
    await until(() => first.replicaCount() === 2 && second.replicaCount() === 2, 'two to count two')
    await Promise.all([first.deregister(), second.deregister()])
  })
}

type Member = ReturnType<Store['replicas']['register']>
