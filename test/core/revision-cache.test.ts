import t from 'tap'
import { createRevisionCache, type RevisionCache } from '../../core/cache/revision-cache.ts'
import type { Revision } from '../../core/ports/facts.ts'

/** A store whose answers the test sends. */
function createSource() {
  const asked: { answer(facts: string): void; fail(): void }[] = []
  return {
    asked,
    source: () =>
      new Promise<Revision>((resolve, reject) =>
        asked.push({
          answer: (facts) => resolve({ facts, content: '' }),
          fail: () => reject(new Error('no answer')),
        })
      ),
  }
}

const bound = { maxStalenessMs: 1_000 }
const facts = async (freshness: RevisionCache, now: number): Promise<string> =>
  (await freshness.get(now)).facts

t.test('an unconfirmed revision is not used beyond the bound', async (t) => {
  const { asked, source } = createSource()
  const freshness = createRevisionCache(source, bound)
  const first = freshness.get(0)
  asked[0]!.answer('1')
  t.equal((await first).facts, '1')
  t.equal(await facts(freshness, 499), '1')
  t.equal(asked.length, 1)
  t.equal(await facts(freshness, 500), '1', 'from half the bound on it asks behind the requests')
  t.equal(asked.length, 2)
  t.equal(await facts(freshness, 999), '1')
  const late = freshness.get(1_000)
  asked[1]!.fail()
  await t.rejects(Promise.resolve(late))
  t.equal(freshness.staleWindow(1_000), undefined)
  const again = freshness.get(1_001)
  asked[2]!.fail()
  await t.rejects(Promise.resolve(again), { message: 'no answer' })
})

t.test('a revalidation applies to later requests, and an older answer does not undo it', async (t) => {
  const { asked, source } = createSource()
  const changes: number[] = []
  const freshness = createRevisionCache(source, bound, { onChange: () => void changes.push(1) })
  const slow = freshness.get(0)
  const renewed = freshness.revalidate(10)
  asked[1]!.answer('2')
  t.equal((await renewed).facts, '2')
  asked[0]!.answer('1')
  t.equal((await slow).facts, '2', 'who waited for the older answer gets the newer one')
  t.equal(await facts(freshness, 20), '2')
  t.equal(changes.length, 1)
})

t.test('the revision is used while the store is down only with stale-if-error, and only for so long', async (t) => {
  const { asked, source } = createSource()
  const told: string[] = []
  const freshness = createRevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {
    onUnavailable: () => void told.push('silent'),
    onRecovered: () => void told.push('answering'),
  })
  const first = freshness.get(0)
  asked[0]!.answer('1')
  await first

  const waiting = freshness.get(1_500)
  asked[1]!.fail()
  t.equal((await waiting).facts, '1')
  t.strictSame(freshness.staleWindow(1_500), { since: 0, until: 6_000 })
  t.equal(await facts(freshness, 1_600), '1')
  t.equal(asked.length, 2, 'no request waits, and the source is not read all the time')
  t.equal(await facts(freshness, 2_500), '1')
  t.equal(asked.length, 3, 'but every second')
  t.equal(await facts(freshness, 5_999), '1')
  t.strictSame(told, ['silent'])

  const over = freshness.get(6_000)
  for (const question of asked.slice(2)) question.fail()
  await t.rejects(Promise.resolve(over))
  t.equal(freshness.staleWindow(6_000), undefined)

  const back = freshness.get(7_000)
  asked.at(-1)!.answer('2')
  t.equal((await back).facts, '2')
  t.strictSame(told, ['silent', 'answering'])
  t.equal(freshness.staleWindow(7_100), undefined)
})

t.test('what was confirmed before the machine slept is not used afterwards', async (t) => {
  const { asked, source } = createSource()
  let asleepMs = 0
  const today = () => 1_800_000_000_000 + asleepMs
  const freshness = createRevisionCache(source, { ...bound, staleIfErrorMs: 5_000 }, {}, today)
  const first = freshness.get(0)
  asked[0]!.answer('1')
  await first
  // What stands still meanwhile says that it was a moment.
  asleepMs = 999
  t.equal(await facts(freshness, 0), '1')
  asleepMs = 3_600_000
  const second = freshness.get(1)
  asleepMs *= 2
  const third = freshness.get(2)
  t.equal(asked.length, 4, 'what was asked before it slept is asked again')
  asked[3]!.fail()
  await t.rejects(Promise.resolve(third), 'nor in place of an answer')
  t.equal(freshness.staleWindow(2), undefined)
  asked[1]!.answer('2')
  asked[2]!.answer('2')
  await second

  asleepMs = 0
  t.equal(await facts(freshness, 1_000), '2', 'a calendar that is set back makes nothing older')
  const late = freshness.get(1_001)
  asked.at(-1)!.answer('3')
  t.equal((await late).facts, '3', 'nor younger')
})

t.test('a read from before an invalidation is not used after it', async (t) => {
  const { asked, source } = createSource()
  const freshness = createRevisionCache(source, bound)
  const before = freshness.get(0)
  freshness.invalidate(1)
  const after = freshness.get(2)
  t.equal(asked.length, 2)
  asked[0]!.answer('1')
  asked[1]!.answer('2')
  await before
  t.equal((await after).facts, '2')
})
