/** `store copy` of a source that does not stand still, and into a target that does not keep what it is given. */
import { copyFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { type CopyReport, copyStore } from '../../adapters/stores/copy/copy.ts'
import type { CopySource } from '../../adapters/stores/copy/source-and-target.ts'
import { openSource, openTarget } from '../../cli/commands/store.ts'
import type { Store } from '../../core/ports/store.ts'
import { apply, exported, query, stamp, T0 } from '../contract/store/samples.ts'
import { until } from '../postgres/until.ts'
import { documentOf, ending, runProgram, startProgram } from '../support/cli-program.ts'
import { canary } from '../support/partner-service.ts'
import { breakOff, copy } from './copies/copying.ts'
import { fillStore } from './copies/full-store.ts'
import { fileOf, type Kind, openAt, openPlaces } from './copies/places.ts'

const places = await openPlaces()
t.teardown(() => places.close())

const source = await places.vacant('sqlite')
const filled = await openAt(source)
const world = await fillStore(filled)
await filled.close()
const { data: { tables } } = documentOf(await copy(source, await places.vacant('sqlite'), '--json'))

/** A store like the source, to be changed. */
async function duplicate(kind: Kind): Promise<string> {
  const place = await places.vacant(kind)
  if (kind === 'sqlite') copyFileSync(fileOf(source), fileOf(place))
  else await copy(source, place)
  return place
}

/** Copies in this process, from a source that is seen through `view`. */
async function copyThrough(
  from: string,
  to: string,
  view: (archive: CopySource) => CopySource,
): Promise<CopyReport> {
  const [archive, target] = [await openSource(from), await openTarget(to)]
  try {
    return await copyStore(view(archive), target, { now: Date.now() })
  } finally {
    await target.close()
    await archive.close()
  }
}

const itself = (archive: CopySource): CopySource => archive

const changes: Readonly<Record<string, (store: Store) => unknown>> = {
  'a partner': (store) => apply(store, { type: 'partner.suspended', slug: 'acme' }),
  'a plan': (store) => store.removeContent('plans', ['unplaced-a'], stamp),
  'a use of a key': (store) => store.recordKeyUses(new Map([[world.keys['demo full'].id, Date.now()]])),
  'a signup': (store) => store.createSignup(canary({ world }, {}), undefined),
  'a test signup': (store) =>
    store.createSignup(
      canary({ world }, {
        environment: 'test',
        keyId: world.keys['demo test'].id,
      }),
      undefined,
    ),
  'a count': (store) =>
    store.recordUsage(
      [{ partner: 'demo', day: '2026-01-01', endpoint: 'plans', requests: 1, errors: 0 }],
      'batch',
    ),
}

for (const kind of places.kinds) {
  await t.test(`what changes in ${kind} behind the comparison is noticed`, async (t) => {
    const [changing, target] = [await duplicate(kind), await places.vacant('sqlite')]
    const store = await openAt(changing)
    for (const [name, change] of Object.entries(changes)) {
      let looks = 0
      const report = await copyThrough(changing, target, (archive) => ({
        ...archive,
        async changeToken() {
          // The last look: all has been compared.
          if (++looks === 3) await change(store)
          return await archive.changeToken()
        },
      }))
      t.match(report, { isFinished: false, sourceChanged: true }, name)
      t.ok(report.tables.every(({ same }) => same))
    }
    await store.close()
    t.match(await runProgram(['partners', 'list', '--store', target]), { code: 1 })
    t.match(await copy(changing, target), { code: 0 }, 'given again, it brings that')
  })

  await t.test(`what the source has become is brought to ${kind}, too`, async (t) => {
    const [changing, target] = [await duplicate('sqlite'), await places.vacant(kind)]
    await breakOff(changing, target, ['comparing', 'audit', 0])

    const now = Date.now()
    const later = { actor: 'grace', at: now }
    const store = await openAt(changing)
    const demo = (await store.findPartner('demo'))!
    await apply(
      store,
      { type: 'partner.suspended', slug: 'acme' },
      { type: 'key.revoked', id: world.keys['demo profiles'].id },
      { type: 'partner.created', partner: { ...demo, slug: 'aaa-new' } },
    )
    await store.recordKeyUses(new Map([[world.keys['demo full'].id, now]]))
    const bare = (await exported(store, 'profiles')).find(({ slug }) => slug === 'bare')!
    const another = { ...bare, headline: 'Another' }
    const moved = { ...bare, slug: 'moved', industry: 'zzz', visibleTo: ['aaa-new'] }
    await store.importContent('profiles', [another, moved], { now, actor: 'grace' })
    // Changed and changed back: only the instant of the change is another.
    await store.importContent('profiles', [bare], { now: now + 1, actor: 'grace' })
    await store.removeContent('profiles', ['for-acme', 'not-yet'], later)
    // Both are gone, and one was the parent of the other.
    await store.removeContent('industries', ['aaa', 'mmm'], later)
    await store.removeContent('banners', ['hush'], later)
    await store.removeContent('plans', ['unplaced-a'], later)
    await store.createSignup(canary({ world }, { createdAt: now }), undefined)
    await store.close()

    const brought = documentOf(await copy(changing, target, '--json')).data.tables
    const anew = await places.vacant('sqlite')
    t.strictSame(brought, documentOf(await copy(changing, anew, '--json')).data.tables)

    const [ours, theirs] = [await openAt(changing), await openAt(target)]
    const found = async (store: Store, word: string) =>
      (await store.listProfiles('aaa-new', query({ words: [word] }), now)).map(({ slug }) => slug)
    t.strictSame(await found(theirs, 'another'), [], 'nothing is left of what was')
    t.strictSame(await found(theirs, 'bare'), await found(ours, 'bare'))
    t.strictSame(
      sorted(await theirs.countProfiles('demo', 'country', now)),
      sorted(await ours.countProfiles('demo', 'country', now)),
    )
    await ours.close()
    await theirs.close()
  })

  await t.test(`a finished copy in ${kind} is brought what came since, unless it was used`, async (t) => {
    const [changing, target] = [await duplicate('sqlite'), await places.vacant(kind)]
    t.match(await copy(changing, target), { code: 0 })
    const open = await openAt(target)
    t.match(await copy(changing, target), { code: 0 })
    t.ok(await open.revision(), 'where nothing came, nobody has to start again')
    const store = await openAt(changing)
    for (const change of Object.values(changes)) await change(store)
    await store.close()
    t.match(await copy(changing, target, '--dry-run'), { code: 0 })
    t.match(await copy(changing, target), { code: 0 })
    await t.rejects(async () => await open.revision(), { code: 'refused', message: /Start again/ })
    await open.close()

    for (const [name, change] of Object.entries(changes)) {
      const used = await places.vacant(kind)
      await copyThrough(source, used, itself)
      const store = await openAt(used)
      await change(store)
      await store.close()
      await t.rejects(
        copyThrough(changing, used, itself),
        { message: /used since: nothing was written/ },
        name,
      )
    }
  })

  await t.test(`what refers to what was not there a moment before is not forced into ${kind}`, async (t) => {
    const [changing, target] = [await duplicate('sqlite'), await places.vacant(kind)]
    const store = await openAt(changing)
    const { key } = (await store.findKey(world.keys['demo full'].id))!
    const added = copyThrough(changing, target, (archive) => ({
      ...archive,
      tables: {
        ...archive.tables,
        // After the keys, and before the signups.
        profiles: {
          async read(after, limit) {
            if (after === undefined && await store.findKey('AAAAnew00000') === undefined) {
              await apply(store, { type: 'key.issued', key: { ...key, id: 'AAAAnew00000' } })
              await store.createSignup(canary({ world }, { keyId: 'AAAAnew00000', createdAt: T0 }), undefined)
            }
            return await archive.tables.profiles.read(after, limit)
          },
        },
      },
    }))
    await t.rejects(added, {
      code: 'refused',
      message: /the source is being changed\. The same command, given again, brings that/,
    })
    await store.close()
    t.match(await copy(changing, target), { code: 0 })
  })
}

await t.test('a source that does not rest, by the program', async (t) => {
  const [changing, target] = [await duplicate('sqlite'), await places.vacant('sqlite')]
  const writer = new DatabaseSync(fileOf(changing))
  const copying = ending(startProgram(['store', 'copy', '--from', changing, '--to', target, '--json']))
  let isOver = false
  const ended = copying.finally(() => isOver = true)
  await until(() => {
    writer.exec('UPDATE partner_key SET last_used_at = ifnull(last_used_at, 0) + 1')
    return isOver
  }, 'the copy to end')
  writer.close()
  const { code, ...said } = await ended
  t.equal(code, 1)
  const { error } = documentOf({ code, ...said })
  t.match(error, {
    code: 'source_changed',
    detail: /changed during the copy\. Stop its servers, and repeat the command to copy the rest\./,
  })
  t.equal((error.tables as unknown[]).length, tables.length)
  t.match(await copy(changing, target), { code: 0 })
})

await t.test('a target that does not keep what it is given is told by table and row', async (t) => {
  const target = await places.vacant('sqlite')
  await breakOff(source, target, ['copying', 'settings', 0])
  const meddler = new DatabaseSync(fileOf(target))
  for (const event of ['INSERT', 'UPDATE']) {
    meddler.exec(`CREATE TRIGGER meddling_${event} AFTER ${event} ON partner WHEN new.slug = 'kiosk'
      BEGIN UPDATE partner SET name = 'Meddled with' WHERE slug = 'kiosk'; END`)
  }
  const spoilt = await copy(source, target)
  t.match(spoilt, { code: 1, stdout: '' })
  t.match(spoilt.stderr, /differs from its source .* Tables that differ: partners \(first at kiosk\)\./)
  t.match(spoilt.stderr, /^ {2}partners .* no$/m)
  t.match(documentOf(await copy(source, target, '--json')).error, {
    code: 'copy_differs',
    copied: false,
    tables: [{ table: 'settings', same: true }, { table: 'partners', same: false, differs_at: 'kiosk' }],
  })
  t.match(await runProgram(['partners', 'list', '--store', target]), { code: 1 })
  meddler.exec('DROP TRIGGER meddling_INSERT; DROP TRIGGER meddling_UPDATE')
  meddler.close()
  t.strictSame(documentOf(await copy(source, target, '--json')).data.tables, tables)
})

function sorted(counts: ReadonlyMap<string, number>): readonly [string, number][] {
  return [...counts].sort(([a], [b]) => a < b ? -1 : 1)
}
