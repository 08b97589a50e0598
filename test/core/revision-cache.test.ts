import t from 'tap'
import { RevisionCache } from '../../core/cache/revision-cache.ts'
import type { Revision } from '../../core/ports/facts.ts'

/** A store whose reads the test resolves. */
function createSource() {
  const reads: { answer(facts: string): void; fail(): void }[] = []
  return {
    reads,
    source: () =>
      new Promise<Revision>((resolve, reject) =>
        reads.push({
          answer: (facts) => resolve({ facts, content: '' }),
          fail: () => reject(new Error('no response')),
        })
      ),
  }
}

const bound = { maxStalenessMs: 1_000 }
const facts = async (cache: RevisionCache, now: number): Promise<string> => (await cache.get(now)).facts

t.test('a revision is not used beyond the bound without revalidation', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, bound)
  const first = cache.get(0)
  reads[0]!.answer('1')
  t.equal((await first).facts, '1')
  t.equal(await facts(cache, 499), '1')
  t.equal(reads.length, 1)
  t.equal(await facts(cache, 500), '1', 'from half the bound on it revalidates in the background')
  t.equal(reads.length, 2)
  t.equal(await facts(cache, 999), '1')
  const late = cache.get(1_000)
  reads[1]!.fail()
  await t.rejects(Promise.resolve(late))
  t.equal(cache.staleWindow(1_000), undefined)
  const again = cache.get(1_001)
  reads[2]!.fail()
  await t.rejects(Promise.resolve(again), { message: 'no response' })
})

t.test('a revalidation applies to later requests, and an older response does not undo it', async (t) => {
  const { reads, source } = createSource()
  const changes: number[] = []
  const cache = new RevisionCache(source, bound, { onChange: () => void changes.push(1) })
  const slow = cache.get(0)
  const renewed = cache.revalidate(10)
  reads[1]!.answer('2')
  t.equal((await renewed).facts, '2')
  reads[0]!.answer('1')
  t.equal((await slow).facts, '2', 'a waiter for the older read gets the newer revision')
  t.equal(await facts(cache, 20), '2')
  t.equal(changes.length, 1)
})

t.test('while the store is down, the revision is used only within stale-if-error', async (t) => {
  const { reads, source } = createSource()
  const events: string[] = []
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {
    onUnavailable: () => void events.push('silent'),
    onRecovered: () => void events.push('answering'),
  })
  const first = cache.get(0)
  reads[0]!.answer('1')
  await first

  const waiting = cache.get(1_500)
  reads[1]!.fail()
  t.equal((await waiting).facts, '1')
  t.strictSame(cache.staleWindow(1_500), { since: 0, until: 6_000 })
  t.equal(await facts(cache, 1_600), '1')
  t.equal(reads.length, 2, 'no request waits, and the source is not read each time')
  t.equal(await facts(cache, 2_500), '1')
  t.equal(reads.length, 3, 'the source is read every second')
  t.equal(await facts(cache, 5_999), '1')
  t.strictSame(events, ['silent'])

  const over = cache.get(6_000)
  for (const question of reads.slice(2)) question.fail()
  await t.rejects(Promise.resolve(over))
  t.equal(cache.staleWindow(6_000), undefined)

  const back = cache.get(7_000)
  reads.at(-1)!.answer('2')
  t.equal((await back).facts, '2')
  t.strictSame(events, ['silent', 'answering'])
  t.equal(cache.staleWindow(7_100), undefined)

  const [older, newer] = [cache.revalidate(7_200), cache.revalidate(7_300)]
  reads.at(-1)!.answer('2')
  await newer
  reads.at(-2)!.fail()
  await t.rejects(Promise.resolve(older))
  t.strictSame(events, ['silent', 'answering'], 'a failure from before the last answer is no outage')
})

t.test('a revision from before the machine slept is not used afterwards', async (t) => {
  const { reads, source } = createSource()
  let asleepMs = 0
  const today = () => 1_800_000_000_000 + asleepMs
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {}, today)
  const first = cache.get(0)
  reads[0]!.answer('1')
  await first
  // The monotonic clock stops during sleep.
  asleepMs = 999
  t.equal(await facts(cache, 0), '1')
  asleepMs = 3_600_000
  const second = cache.get(1)
  asleepMs *= 2
  const third = cache.get(2)
  t.equal(reads.length, 4, 'a read from before the sleep is repeated')
  reads[3]!.fail()
  await t.rejects(Promise.resolve(third), 'the old revision does not replace a failed read')
  t.equal(cache.staleWindow(2), undefined)
  reads[1]!.answer('2')
  reads[2]!.answer('2')
  await second

  asleepMs = 0
  t.equal(await facts(cache, 1_000), '2', 'a clock that is set back does not age the revision')
  const late = cache.get(1_001)
  reads.at(-1)!.answer('3')
  t.equal((await late).facts, '3', 'a clock that is set back does not renew the revision')
})

t.test('a read that started before an invalidation is not used after it', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, bound)
  const before = cache.get(0)
  cache.invalidate(1)
  const after = cache.get(2)
  t.equal(reads.length, 2)
  reads[0]!.answer('1')
  reads[1]!.answer('2')
  await before
  t.equal((await after).facts, '2')
})
