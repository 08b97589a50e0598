import type { ContentKind, ContentRecords } from '../../../core/ports/content.ts'
import type { Store } from '../../../core/ports/store.ts'
import {
  actor,
  banner,
  createPartners,
  exported,
  fails,
  fullProfile,
  industry,
  plan,
  profile,
  publish,
  query,
  stamp,
  T0,
} from './samples.ts'
import type { Check } from './suites.ts'

/** One record of each kind. */
const records: { [K in ContentKind]: ContentRecords[K] } = {
  industries: industry('education', { parentSlug: 'services' }),
  profiles: fullProfile,
  plans: plan,
  banners: banner,
}

const changed: { [K in ContentKind]: ContentRecords[K] } = {
  industries: { ...records.industries, parentSlug: undefined },
  profiles: { ...fullProfile, tags: [] },
  plans: { ...plan, position: 1 },
  banners: { ...banner, body: 'New' },
}

const kinds = Object.keys(records) as ContentKind[]

async function prepare(store: Store): Promise<void> {
  await createPartners(store, 'acme', 'globex')
  await store.importContent('industries', [industry('education'), industry('services')], { now: T0, actor })
}

/** Import, export and removal of content. */
export async function contentContract(check: Check): Promise<void> {
  for (const kind of kinds) {
    await check(`${kind} are read as written, replaced and removed by slug`, async (t, store) => {
      await prepare(store)
      const record = records[kind]
      const slug = 'slug' in record ? record.slug : record.partner
      const options = { now: T0 + 1, actor }
      const others = (await exported(store, kind)).filter((other) =>
        !('slug' in other) || other.slug !== slug
      )
      let before = await store.revision()
      /** Checks that only the revision of content has changed since the last call. */
      const expectContentChange = async () => {
        const { facts, content } = await store.revision()
        t.equal(facts, before.facts)
        t.ok(content !== before.content, 'the revision of content has changed')
        before = { facts, content }
      }
      const expectUnchanged = async (records: readonly ContentRecords[ContentKind][]) => {
        t.strictSame(await exported(store, kind), records)
        t.strictSame(await store.revision(), before)
      }

      const { created, replaced } = await store.importContent(kind, [record], options)
      t.equal(created + replaced, 1)
      await expectContentChange()
      const reversed = Object.fromEntries(Object.entries(record).reverse()) as unknown as typeof record
      for (const same of [[reversed], await exported(store, kind)]) {
        const report = await store.importContent(kind, same, { ...options, now: T0 + 2 })
        t.strictSame(report, { created: 0, replaced: 0, unchanged: same.length })
      }
      await expectUnchanged([record, ...others])

      const twice = [changed[kind], changed[kind]]
      const report = { created: 0, replaced: 1, unchanged: 1 }
      t.strictSame(await store.importContent(kind, twice, { ...options, dryRun: true }), report)
      await expectUnchanged([record, ...others])
      t.strictSame(await store.importContent(kind, twice, options), report)
      await expectContentChange()

      const missing = await store.removeContent(kind, [slug, 'nothing'], stamp)
      t.strictSame(missing, { missing: ['nothing'], used: [] })
      t.strictSame(await store.removeContent(kind, [], stamp), { missing: [], used: [] })
      t.strictSame(await store.removeContent(kind, [slug], stamp, true), { missing: [], used: [] })
      await expectUnchanged([changed[kind], ...others])
      t.strictSame(await store.removeContent(kind, [slug], stamp), { missing: [], used: [] })
      await expectContentChange()
      await expectUnchanged(others)
      const again = await store.importContent(kind, [record], options)
      t.strictSame(again, { created: 1, replaced: 0, unchanged: 0 })
    })
  }

  await check('exports are sorted by slug', async (t, store) => {
    const slugs = ['b', 'a-b', 'ab', 'a', '0']
    await publish(store, slugs.map((slug) => profile(slug)))
    t.strictSame((await exported(store, 'profiles')).map(({ slug }) => slug), ['0', 'a', 'a-b', 'ab', 'b'])
  })

  await check('an import that fails midway stores nothing', async (t, store) => {
    await publish(store, [profile('a')])
    const before = await store.revision()
    const broken = { ...profile('c'), headline: undefined } as unknown as ContentRecords['profiles']
    t.ok(
      await fails(() => store.importContent('profiles', [profile('b'), broken], { now: T0, actor })),
      'it fails',
    )
    t.strictSame((await exported(store, 'profiles')).map(({ slug }) => slug), ['a'])
    t.strictSame(await store.revision(), before)
  })

  await check('records may be streamed, and all or none of them are stored', async (t, store) => {
    await prepare(store)
    await store.importContent('profiles', [profile('a')], { now: T0, actor })
    const before = await store.revision()
    async function* arriving(end: () => void) {
      yield profile('a')
      yield profile('b')
      await Promise.resolve()
      end()
    }
    const broken = arriving(() => {
      throw new Error('broken')
    })
    t.ok(await fails(() => store.importContent('profiles', broken, { now: T0, actor })), 'it throws')
    t.strictSame(await store.revision(), before)
    t.equal((await exported(store, 'profiles')).length, 1)
    t.strictSame(await store.importContent('profiles', arriving(() => {}), { now: T0, actor }), {
      created: 1,
      replaced: 0,
      unchanged: 1,
    })
  })

  await check('an import reports its progress', async (t, store) => {
    const many = Array.from({ length: 2000 }, (_, index) => industry(`i${index}`))
    const seen: number[] = []
    await store.importContent('industries', many, { now: T0, actor, progress: (done) => seen.push(done) })
    t.ok(seen.length > 1, 'reported more than once')
    t.strictSame(seen, seen.toSorted((a, b) => a - b), 'counts increase')
    t.ok(seen.every((done) => done > 0 && done <= 2000), 'counts are of records')
  })

  await check(
    'an import sets updatedAt of changed records only',
    async (t, store) => {
      await prepare(store)
      await store.importContent('banners', [banner], { now: T0 + 1, actor })
      await publish(store, [profile('a'), profile('b')], { now: T0 + 1, actor })
      await store.importContent('banners', [banner], { now: T0 + 2, actor })
      await publish(store, [profile('a'), profile('b', { name: 'New' })], { now: T0 + 2, actor })
      t.strictSame(await store.findBanner('acme'), { ...banner, updatedAt: T0 + 1 })
      t.equal((await store.findProfile('acme', 'a', T0))?.updatedAt, T0 + 1)
      t.equal((await store.findProfile('acme', 'b', T0))?.updatedAt, T0 + 2)
      await store.importContent('banners', [changed.banners], { now: T0 + 3, actor })
      t.strictSame(await store.findBanner('acme'), { ...changed.banners, updatedAt: T0 + 3 })
    },
  )

  await check(
    'industries may precede their parents, and cannot be removed while referenced',
    async (t, store) => {
      const root = industry('root')
      const child = industry('child', { parentSlug: 'root' })
      const leaf = industry('leaf', { parentSlug: 'child' })
      await store.importContent('industries', [leaf, child, root], { now: T0, actor })
      await store.importContent('profiles', [profile('a', { industry: 'leaf' })], { now: T0, actor })
      const remove = async (...slugs: string[]) => await store.removeContent('industries', slugs, stamp)
      t.strictSame(await remove('root'), { missing: [], used: ['root'] })
      t.strictSame(await remove('child', 'root', 'none'), { missing: ['none'], used: ['child'] })
      t.strictSame(await remove('root', 'leaf', 'child'), { missing: [], used: ['leaf'] })
      t.equal((await store.listIndustries()).length, 3)
      await store.removeContent('profiles', ['a'], stamp)
      t.strictSame(await remove('root', 'leaf', 'child'), { missing: [], used: [] })
      t.strictSame(await store.listIndustries(), [])
    },
  )

  await check('plans, industries and banners are read as written', async (t, store) => {
    await prepare(store)
    await store.importContent('plans', [plan, { ...plan, slug: 'free' }], { now: T0, actor })
    t.strictSame((await store.listPlans()).toSorted((a, b) => a.slug < b.slug ? -1 : 1), [
      { ...plan, slug: 'free' },
      plan,
    ])
    t.strictSame((await store.listIndustries()).toSorted((a, b) => a.slug < b.slug ? -1 : 1), [
      industry('education'),
      industry('services'),
    ])
    t.equal(await store.findBanner('acme'), undefined)
    t.equal(await store.findBanner('missing'), undefined)
  })

  await check('renaming an industry renames it in its profiles', async (t, store) => {
    await publish(store, [profile('a')])
    await store.importContent('industries', [industry('education', { name: 'Schools' })], {
      now: T0 + 5,
      actor,
    })
    const wanted = { slug: 'education', name: 'Schools' }
    t.strictSame((await store.findProfile('acme', 'a', T0))?.industry, wanted)
    const [card] = await store.listProfiles('acme', query(), T0)
    t.strictSame(card?.industry, wanted)
    t.equal(card?.updatedAt, T0)
  })

  await check('the revision of the directory changes with content only', async (t, store) => {
    if (store.directoryRevision === undefined) return
    const before = await store.directoryRevision()
    await createPartners(store, 'acme')
    t.equal(await store.directoryRevision(), before)
    await publish(store, [profile('a')])
    t.ok(await store.directoryRevision() !== before, 'it has changed')
  })
}
