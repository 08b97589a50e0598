import t from 'tap'
import { RevisionCache } from '../../core/cache/revision-cache.ts'
import type { Revision } from '../../core/ports/facts.ts'

/** A store whose reads the test resolves. */
function createSource() {
  const reads: { answer(facts: string, content?: string): void; fail(): void }[] = []
  return {
    reads,
    source: () =>
      new Promise<Revision>((resolve, reject) =>
        reads.push({
          answer: (facts, content = '') => resolve({ facts, content }),
          fail: () => reject(new Error('no response')),
        })
      ),
  }
}

const bound = { maxStalenessMs: 1_000 }
/** A calendar on which a busy machine makes no time pass. */
const still = () => 0
const facts = async (cache: RevisionCache, now: number): Promise<string> => (await cache.get(now)).facts

t.test('a revision is not used beyond the bound without revalidation', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, bound, {}, still)
  t.equal(cache.ageMs(0), undefined)
  const first = cache.get(0)
  reads[0]!.answer('1')
  t.equal((await first).facts, '1')
  t.equal(await facts(cache, 499), '1')
  t.equal(cache.ageMs(499), 499)
  t.equal(reads.length, 1)
  t.equal(await facts(cache, 500), '1', 'from half the bound on it revalidates in the background')
  t.equal(reads.length, 2)
  t.equal(await facts(cache, 999), '1')
  const late = cache.get(1_000)
  reads[1]!.fail()
  await t.rejects(Promise.resolve(late))
  t.equal(cache.staleWindow(1_000), undefined)
  t.equal(cache.staleWindow(999), undefined, 'without stale-if-error there is none')
  t.equal(cache.isAvailable, false)
  const again = cache.get(1_001)
  reads[2]!.fail()
  await t.rejects(Promise.resolve(again), { message: 'no response' })
})

t.test('a revalidation applies to later requests, and an older response does not undo it', async (t) => {
  const { reads, source } = createSource()
  const changes: number[] = []
  const cache = new RevisionCache(source, bound, { onChange: () => void changes.push(1) }, still)
  const slow = cache.get(0)
  const renewed = cache.revalidate(10)
  reads[1]!.answer('2')
  t.equal((await renewed).facts, '2')
  reads[0]!.answer('1')
  t.equal((await slow).facts, '2', 'a waiter for the older read gets the newer revision')
  t.equal(await facts(cache, 20), '2')
  t.equal(changes.length, 1)
  t.equal(cache.ageMs(20), 10)
})

t.test('requests wait for the read that started last, until it is as old as the bound', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, bound, {}, still)
  const older = cache.get(0)
  const newer = cache.revalidate(10)
  reads[0]!.answer('1')
  await older
  const waiting = cache.get(1_009)
  t.equal(reads.length, 2)
  const late = cache.get(1_010)
  t.equal(reads.length, 3)
  reads[1]!.answer('2')
  reads[2]!.answer('3')
  t.equal((await newer).facts, '2')
  t.match((await waiting).facts, /2|3/)
  t.equal((await late).facts, '3')
})

t.test('a change of the facts or of the content alone is a change, and nothing else is', async (t) => {
  const { reads, source } = createSource()
  let changes = 0
  const cache = new RevisionCache(source, bound, { onChange: () => void changes++ }, still)
  const steps = [['1', 'a', 1], ['1', 'a', 1], ['1', 'b', 2], ['2', 'b', 3], ['2', 'b', 3]] as const
  for (const [index, [facts, content, total]] of steps.entries()) {
    const read = cache.revalidate(index)
    reads[index]!.answer(facts, content)
    t.strictSame(await read, { facts, content })
    t.equal(changes, total)
  }
})

t.test('a source that needs no waiting may throw', async (t) => {
  let isDown = false
  const source = (): Revision => {
    if (isDown) throw new Error('no response')
    return { facts: '1', content: '' }
  }
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {}, still)
  t.strictSame(cache.get(0), { facts: '1', content: '' })
  t.strictSame(cache.get(500), { facts: '1', content: '' })
  t.equal(cache.ageMs(500), 0, 'it was read in the background')
  t.strictSame(cache.get(2_000), { facts: '1', content: '' })
  isDown = true
  t.equal((await cache.get(3_000)).facts, '1')
  t.strictSame([cache.isAvailable, cache.ageMs(3_000)], [false, 1_000])
  await t.rejects(Promise.resolve(cache.get(8_000)), { message: 'no response' })
})

t.test('a source that needs no waiting is read before the request that finds it due', async (t) => {
  let revision = '1'
  const source = () => {
    if (revision === '') throw new Error('down')
    return { facts: revision, content: '' }
  }
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 10_000 }, {}, still)
  t.equal(await facts(cache, 0), '1')
  revision = '2'
  t.equal(await facts(cache, 500), '2', 'from half the bound on')
  revision = ''
  t.equal(await facts(cache, 2_000), '2')
  revision = '3'
  t.equal(await facts(cache, 4_000), '3', 'after an outage')
})

t.test('while the store is down, the revision is used only within stale-if-error', async (t) => {
  const { reads, source } = createSource()
  const events: string[] = []
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {
    onUnavailable: () => void events.push('silent'),
    onRecovered: () => void events.push('answering'),
  }, still)
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
  reads[2]!.fail()
  await new Promise(setImmediate)
  t.equal(await facts(cache, 3_500), '1')
  t.equal(await facts(cache, 5_999), '1')
  t.strictSame(events, ['silent'])

  const over = cache.get(6_000)
  for (const question of reads.slice(3)) question.fail()
  await t.rejects(Promise.resolve(over))
  t.equal(cache.staleWindow(6_000), undefined)

  const back = cache.get(7_000)
  reads.at(-1)!.answer('2')
  t.equal((await back).facts, '2')
  t.strictSame(events, ['silent', 'answering'])
  t.equal(cache.staleWindow(7_100), undefined)

  const older = cache.revalidate(7_200)
  const newer = cache.revalidate(7_300)
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
  const cache = new RevisionCache(source, bound, {}, still)
  const before = cache.get(0)
  cache.invalidate(1)
  const after = cache.get(2)
  t.equal(reads.length, 2)
  reads[0]!.answer('1')
  await before
  t.equal(cache.ageMs(2), undefined)
  reads[1]!.answer('2')
  t.equal((await after).facts, '2')
  t.equal(await facts(cache, 3), '2')
  t.equal(reads.length, 2, 'later requests use it, too')
})

t.test('a read at the very instant of an invalidation is used, and a failed one is an outage', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {}, still)
  cache.invalidate(1)
  const first = cache.get(1)
  reads[0]!.answer('1')
  await first
  t.equal(await facts(cache, 1), '1')
  t.equal(reads.length, 1)
  const failed = cache.revalidate(1)
  reads[1]!.fail()
  await t.rejects(Promise.resolve(failed))
  t.equal(cache.isAvailable, false)
  const back = cache.revalidate(1)
  reads[2]!.answer('1')
  await back
  t.equal(cache.isAvailable, true)
})

t.test('during an outage nothing is used that was read before an invalidation', async (t) => {
  const { reads, source } = createSource()
  const cache = new RevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {}, still)
  const first = cache.get(0)
  reads[0]!.answer('1')
  await first
  const failed = cache.revalidate(10)
  reads[1]!.fail()
  await t.rejects(Promise.resolve(failed))
  t.equal(await facts(cache, 20), '1')
  cache.invalidate(30)
  const after = cache.get(40)
  reads[2]!.fail()
  await t.rejects(Promise.resolve(after), { message: 'no response' })
})
