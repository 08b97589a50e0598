/** Which responses are kept, and until when. */
import t from 'tap'
import { createResponseCache, isFresh } from '../../core/cache/response-cache.ts'
import type { Banner } from '../../core/model.ts'
import type { Catalog, Directory } from '../../core/ports/directory.ts'

const now = 1_800_000_000_000
const response = {
  route: 'profiles',
  path: '/profiles',
  params: {},
  partner: 'acme',
  content: '1',
  facts: undefined,
  body: '{"data":"é"}',
  etag: '"1"',
  headers: [],
}

/** A cache over a partner with these instants, and the number of times that they were read. */
function createCache(
  maxBytes = 1_000_000,
  banner: Partial<Banner> = {},
  nextChangeAt: () => unknown = () => undefined,
) {
  const reads: unknown[][] = []
  const cache = createResponseCache<string>(
    maxBytes,
    {
      nextProfileChangeAt(...words: unknown[]) {
        reads.push(words)
        return nextChangeAt()
      },
    } as unknown as Directory,
    { findBanner: (partner: string) => partner === 'acme' ? banner : undefined } as unknown as Catalog,
  )
  /** Requests a target as often as a response needs to be kept. */
  const keep = (target: string, more: Partial<typeof response> = {}, at = now) => {
    for (const _ of [1, 2]) cache.store(target, at, { ...response, ...more })
    return cache.lookup(target)
  }
  return { cache, keep, reads }
}

t.test('a response is kept from the second request of its target on, as bytes', (t) => {
  const { cache, reads } = createCache()
  for (const target of ['/a', '/b']) {
    cache.store(target, now, response)
    t.equal(cache.lookup(target), undefined)
  }
  t.equal(reads.length, 0, 'nothing is read for what is not kept')
  cache.store('/a', now, response)
  const kept = cache.lookup('/a')
  t.strictSame(kept, {
    ...response,
    body: new TextEncoder().encode(response.body),
    madeAt: now,
    expiresAt: Infinity,
  })
  t.equal(cache.lookup('/b'), undefined)
  const body = new Uint8Array([1])
  cache.store('/a', now, { ...response, body })
  t.equal(cache.lookup('/a')?.body, body, 'a later response replaces it')
  t.end()
})

t.test('a target is forgotten after many others, but a kept response is replaced', (t) => {
  const { cache, keep } = createCache()
  cache.store('/once', now, response)
  keep('/kept')
  for (let index = 0; index < 50_000; index++) cache.store(`/other/${index}`, now, response)
  cache.store('/once', now, response)
  t.equal(cache.lookup('/once'), undefined)
  cache.store('/kept', now, { ...response, etag: '"2"' })
  t.equal(cache.lookup('/kept')?.etag, '"2"')
  t.end()
})

t.test('what is kept counts by twice its body, its target and an overhead, up to half the bound', (t) => {
  const body = new Uint8Array(100)
  const weight = 2 * body.length + '/a'.length + 4096
  t.ok(createCache(2 * weight).keep('/a', { body } as object))
  t.notOk(createCache(2 * weight - 1).keep('/a', { body } as object))
  const { keep, reads } = createCache(0)
  t.notOk(keep('/a'))
  t.strictSame(reads, [])
  t.end()
})

t.test('a response expires when time alone changes what the partner sees', (t) => {
  const past = now - 1
  const soon = now + 1
  const later = now + 2
  const cases: [changeAt: number | undefined, banner: Partial<Banner>, expiresAt: number][] = [
    [undefined, {}, Infinity],
    [soon, {}, soon],
    [later, { startsAt: soon, endsAt: later }, soon],
    [undefined, { startsAt: past, endsAt: later }, later],
    [later, { startsAt: past, endsAt: soon }, soon],
    [soon, { startsAt: later, endsAt: later + 1 }, soon],
    [undefined, { startsAt: past, endsAt: now }, Infinity],
  ]
  for (const [changeAt, banner, expiresAt] of cases) {
    t.equal(createCache(undefined, banner, () => changeAt).keep('/a')?.expiresAt, expiresAt)
  }
  t.equal(createCache(undefined, { endsAt: soon }).keep('/a', { partner: 'other' })?.expiresAt, Infinity)
  t.end()
})

t.test('the instant is read once for a partner, until it has passed or the content changes', (t) => {
  let changeAt = now + 10
  const { keep, reads } = createCache(undefined, {}, () => changeAt)
  keep('/a')
  t.strictSame(reads, [['acme', now]])
  t.equal(keep('/b', {}, now + 9)?.expiresAt, now + 10)
  t.equal(reads.length, 1)
  keep('/b', { partner: 'other' }, now + 9)
  t.strictSame(reads[1], ['other', now + 9])
  changeAt += 10
  t.equal(keep('/b', {}, now + 10)?.expiresAt, now + 20)
  t.equal(reads.length, 3)
  keep('/b', { content: '2' }, now + 10)
  t.equal(reads.length, 4)
  keep('/b', { content: '2' }, now + 9)
  t.equal(reads.length, 5, 'nor for an earlier one')
  t.end()
})

t.test('a response whose instant is read later is kept then, and never if the reading fails', async (t) => {
  const { cache, keep } = createCache(undefined, {}, () => Promise.resolve(now + 1))
  t.equal(keep('/a'), undefined)
  await new Promise(setImmediate)
  t.equal(cache.lookup('/a')?.expiresAt, now + 1)
  const failures = [() => Promise.reject(new Error('no')), () => {
    throw new Error('no')
  }]
  for (const fail of failures) {
    const { cache, keep } = createCache(undefined, {}, fail)
    keep('/a')
    await new Promise(setImmediate)
    t.equal(cache.lookup('/a'), undefined)
  }
})

t.test('a response is fresh before it expires, at the revisions that it depends on', (t) => {
  const kept = { ...response, madeAt: now - 2, expiresAt: now, facts: '5' }
  const revision = { content: '1', facts: '5' }
  t.equal(isFresh(kept, revision, now - 1), true)
  t.equal(isFresh(kept, revision, now), false)
  t.equal(isFresh(kept, revision, now - 3), false, 'nor before it was made')
  t.equal(isFresh(kept, { ...revision, content: '2' }, now - 1), false)
  t.equal(isFresh(kept, { ...revision, facts: '6' }, now - 1), false)
  t.equal(isFresh({ ...kept, facts: undefined }, { ...revision, facts: '6' }, now - 1), true)
  t.end()
})
