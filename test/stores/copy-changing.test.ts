/** `store copy` of a source or into a target that changes, and copies that are refused. */
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { planCopy } from '../../adapters/stores/copy/copy.ts'
import type { Store } from '../../core/ports/store.ts'
import {
  actor,
  apply,
  createKeys,
  exported,
  industry,
  plan,
  profile,
  query,
  signup,
  stamp,
  T0,
  usageCount,
} from '../contract/store/samples.ts'
import { openSql } from '../postgres/fixtures.ts'
import { until } from '../postgres/until.ts'
import { documentOf, ending, runProgram, startProgram } from '../support/cli-program.ts'
import {
  copy,
  copyUpTo,
  fileOf,
  type Kind,
  openAt,
  openPlaces,
  withEnds,
  withStoreAt,
} from './copies/stores.ts'

const places = await openPlaces()
const noServer = places.server === undefined && 'no server'
t.teardown(() => places.close())

/** A store with a row of most kinds. */
async function filled(kind: Kind = 'sqlite'): Promise<string> {
  const place = await places.vacant(kind)
  await withStoreAt(place, async (store) => {
    await createKeys(store, 'acme', 'globex')
    const slugs = ['root', 'child', 'education']
    const industries = slugs.map((slug, index) => industry(slug, { parentSlug: slugs[index - 1] }))
    await store.importContent('industries', industries, { now: T0, actor })
    const profiles = ['a', 'b', 'c'].map((slug) => profile(slug))
    await store.importContent('profiles', profiles, { now: T0, actor })
    await store.importContent('plans', [plan, { ...plan, slug: 'free' }], { now: T0, actor })
    await store.createSignup(signup('1', { keyId: 'acme-live', country: 'DE' }), undefined)
  })
  return place
}

const source = await filled()

async function duplicate(): Promise<string> {
  const place = await places.vacant('sqlite')
  copyFileSync(fileOf(source), fileOf(place))
  return place
}

async function planned(from: string, to: string) {
  return await withEnds(from, to, (source, target) => planCopy(source, target, { now: Date.now() }))
}

const changes: Readonly<Record<string, (store: Store) => unknown>> = {
  'a partner': (store) => apply(store, { type: 'partner.suspended', slug: 'globex' }),
  'a plan': (store) => store.removeContent('plans', ['free'], stamp),
  'a use of a key': (store) => store.recordKeyUses(new Map([['acme-live', Date.now()]])),
  'a signup': (store) => store.createSignup(signup('new', { keyId: 'acme-live' }), undefined),
  'a test signup': (store) =>
    store.createSignup(signup('test', { environment: 'test', keyId: 'acme-test' }), undefined),
  'a count': (store) => store.recordUsage([usageCount()], 'batch'),
  'a count of a test key': (store) =>
    store.recordUsage([usageCount({ keyId: 'acme-test', environment: 'test' })], 'test batch'),
}

for (const kind of places.kinds) {
  await t.test(`a change of ${kind} during the comparison is noticed`, async (t) => {
    const [changing, target] = [await filled(kind), await places.vacant('sqlite')]
    const store = await openAt(changing)
    for (const [name, change] of Object.entries(changes)) {
      let reads = 0
      const report = await copy(changing, target, (source) => ({
        ...source,
        async changeToken() {
          // The last read, after all comparisons.
          if (++reads === 3) await change(store)
          return await source.changeToken()
        },
      }))
      t.match(report, { isFinished: false, sourceChanged: true }, name)
      t.ok(report.tables.every(({ differsAt }) => differsAt === undefined))
    }
    await store.close()
    await t.rejects(openAt(target), { message: /has not been finished/ })
    t.match(await copy(changing, target), { isFinished: true }, 'a repeated copy transfers the change')
  })

  await t.test(`an interrupted copy into ${kind} transfers what has changed since`, async (t) => {
    const [changing, target] = [await duplicate(), await places.vacant(kind)]
    await copyUpTo(changing, target, ['comparing', 'audit', 0])
    const now = Date.now()
    await withStoreAt(changing, async (store) => {
      const acme = (await store.findPartner('acme'))!
      await apply(
        store,
        { type: 'partner.suspended', slug: 'globex' },
        { type: 'key.revoked', id: 'acme-test' },
        { type: 'partner.created', partner: { ...acme, slug: 'aaa-new' } },
      )
      await store.recordKeyUses(new Map([['acme-live', now]]))
      const moved = profile('moved', { industry: 'root', visibleTo: ['aaa-new'] })
      await store.importContent('profiles', [profile('a', { headline: 'Another' }), moved], { now, actor })
      // Changed and changed back: only the instant of the change differs.
      await store.importContent('profiles', [profile('a')], { now: now + 1, actor })
      await store.removeContent('profiles', ['b', 'c', 'a'], stamp)
      await store.importContent('profiles', [profile('a', { industry: 'root' })], { now: now + 1, actor })
      // One is the parent of the other.
      await store.removeContent('industries', ['child', 'education'], stamp)
      await store.removeContent('plans', ['free'], stamp)
      await store.createSignup(signup('2', { keyId: 'acme-live', createdAt: now }), undefined)
    })
    const { tables, isFinished } = await copy(changing, target)
    t.equal(isFinished, true)
    t.strictSame(tables, (await copy(changing, await places.vacant('sqlite'))).tables)

    const read = (place: string) =>
      withStoreAt(place, async (store) => ({
        another: await store.listProfiles('aaa-new', query({ words: ['another'] }), now),
        all: await store.listProfiles('aaa-new', query(), now),
        countries: [...await store.countProfiles('acme', 'country', now)],
        profiles: await exported(store, 'profiles'),
      }))
    const found = await read(target)
    t.strictSame(found, await read(changing))
    t.strictSame([found.another, found.all.map(({ slug }) => slug)], [[], ['a', 'moved']])
  })

  await t.test(`a finished copy in ${kind} is updated until it is used`, async (t) => {
    const [changing, target] = [await duplicate(), await places.vacant(kind)]
    await copy(changing, target)
    const open = await openAt(target)
    await copy(changing, target)
    t.ok(await open.revision(), 'a copy without changes leaves an open store usable')
    await withStoreAt(changing, async (store) => {
      for (const change of Object.values(changes)) await change(store)
    })
    t.ok((await planned(changing, target)).some(({ toWrite }) => toWrite > 0))
    t.match(await copy(changing, target), { isFinished: true })
    await t.rejects(async () => await open.revision(), { code: 'refused', message: /Start again/ })
    await open.close()

    await withStoreAt(target, (store) => apply(store, { type: 'key.disabled', id: 'acme-live' }))
    const expected = {
      code: 'refused',
      message: /is a finished copy of .* that has been used since: nothing was written/,
    }
    await t.rejects(copy(changing, target), expected)
    await t.rejects(planned(changing, target), expected)
    t.equal(
      await withStoreAt(target, async (store) => (await store.findKey('acme-live'))?.key.state),
      'disabled',
    )
  })

  await t.test(`a row that refers to one added during the copy is not written to ${kind}`, async (t) => {
    const [changing, target] = [await duplicate(), await places.vacant(kind)]
    const store = await openAt(changing)
    const { key } = (await store.findKey('acme-live'))!
    const added = copy(changing, target, (source) => ({
      ...source,
      async read(table, after) {
        // After the keys, and before the signups.
        if (table === 'profiles' && after === undefined && await store.findKey('added') === undefined) {
          await apply(store, { type: 'key.issued', key: { ...key, id: 'added' } })
          await store.createSignup(signup('2', { keyId: 'added' }), undefined)
        }
        return await source.read(table, after)
      },
    }))
    await t.rejects(added, {
      code: 'refused',
      message: /the source is being changed\. Repeat the command to copy that row/,
    })
    await store.close()
    t.match(await copy(changing, target), { isFinished: true })
  })

  await t.test(`a copy from or into ${kind} is refused, and writes nothing`, async (t) => {
    const [vacant, other] = [await places.vacant('sqlite'), await filled(kind)]
    const missing = { exitCode: 3, code: 'store_missing', message: /There is no store at/ }
    const nowhere = await places.vacant(kind)
    await t.rejects(
      copy(nowhere, vacant),
      kind === 'sqlite' ? missing : { code: 'missing', message: /There is no store at/ },
    )
    if (kind === 'sqlite') t.notOk(existsSync(fileOf(nowhere)))
    await t.rejects(copy(other, other), { code: 'refused', message: /are one store/ })
    const used = { code: 'refused', message: /is in use already.*copied into an empty one/ }
    await t.rejects(copy(source, other), used)
    await t.rejects(planned(source, other), used)

    const unfinished = await places.vacant(kind)
    await copyUpTo(source, unfinished, ['copying', 'settings', 0])
    await t.rejects(copy(other, unfinished), {
      code: 'refused',
      message: /A copy of another store into .* has not been finished/,
    })
    await t.rejects(copy(unfinished, vacant), { code: 'refused', message: /has not been finished/ })
    t.notOk(existsSync(fileOf(vacant)))
    t.match(await copy(source, unfinished), { isFinished: true })
  })
}

await t.test('a concurrent copy into PostgreSQL is one sentence', { skip: noServer }, async (t) => {
  const target = await places.vacant('postgres')
  await withStoreAt(target, () => Promise.resolve())
  const sql = openSql(t, target)
  // As another copy writes it between this one's look and its own write.
  await sql`insert into partner_api.listing values ('a', '', 'DE', 'root', 'a', 0, '')`
  await t.rejects(copy(source, target), {
    code: 'refused',
    message: /^Another copy into the store .* is under way/,
  })
  await sql`delete from partner_api.listing`
  t.match(await copy(source, target), { isFinished: true })
})

await t.test('any change of a finished SQLite copy counts as its use', async (t) => {
  for (const [name, change] of Object.entries(changes)) {
    const [changing, target] = [await duplicate(), await places.vacant('sqlite')]
    await copy(changing, target)
    await withStoreAt(target, async (store) => void await change(store))
    await withStoreAt(changing, (store) => store.removeContent('plans', ['pro'], stamp) as Promise<unknown>)
    await t.rejects(copy(changing, target), { message: /used since: nothing was written/ }, name)
  }
})

await t.test('no command uses the target of an unfinished copy', async (t) => {
  const target = await places.vacant('sqlite')
  await copyUpTo(source, target, ['copying', 'settings', 0])
  for (
    const command of [['partners', 'list'], ['migrate', '--key-prefix', 'other'], ['demo', '--no-serve']]
  ) {
    t.match(
      await runProgram([...command, '--store', target]),
      { code: 1, stderr: /cannot be used.*has not been finished.*store copy/ },
      command.join(' '),
    )
  }
})

await t.test('the command reports a source that keeps changing', async (t) => {
  const [changing, target] = [await duplicate(), await places.vacant('sqlite')]
  const writer = new DatabaseSync(fileOf(changing))
  const copying = ending(startProgram(['store', 'copy', '--from', changing, '--to', target, '--json']))
  let isOver = false
  const ended = copying.finally(() => isOver = true)
  await until(() => {
    writer.exec('UPDATE partner_key SET last_used_at = ifnull(last_used_at, 0) + 1')
    return isOver
  }, 'the copy to end')
  writer.close()
  const result = await ended
  t.equal(result.code, 1)
  t.match(documentOf(result).error, {
    code: 'source_changed',
    detail: /changed during the copy\. Stop its servers, and repeat the command to copy the rest\./,
    tables: [{ table: 'settings' }],
  })
})

await t.test('the command names the tables and rows that a target does not keep', async (t) => {
  const target = await places.vacant('sqlite')
  await copyUpTo(source, target, ['copying', 'settings', 0])
  const intruder = new DatabaseSync(fileOf(target))
  for (const event of ['INSERT', 'UPDATE']) {
    intruder.exec(`CREATE TRIGGER change_${event} AFTER ${event} ON partner WHEN new.slug = 'globex'
      BEGIN UPDATE partner SET name = 'Changed' WHERE slug = 'globex'; END`)
  }
  const command = ['store', 'copy', '--from', source, '--to', target]
  const differing = await runProgram(command)
  t.match(differing, { code: 1, stdout: '' })
  t.match(differing.stderr, /differs from its source .* Tables that differ: partners \(first at globex\)\./)
  t.match(differing.stderr, /^ {2}partners .* no$/m)
  t.match(documentOf(await runProgram([...command, '--json'])).error, {
    code: 'copy_differs',
    copied: false,
    tables: [{ table: 'settings', same: true }, { table: 'modules' }, {
      table: 'partners',
      same: false,
      differs_at: 'globex',
    }],
  })
  await t.rejects(openAt(target), { message: /has not been finished/ })
  intruder.exec('DROP TRIGGER change_INSERT; DROP TRIGGER change_UPDATE')
  intruder.close()
  t.match(await copy(source, target), { isFinished: true })
})

await t.test('the command explains URLs that it cannot copy', async (t) => {
  const run = (...args: readonly string[]) => runProgram(['store', ...args])
  const [none, half, memory, unknown] = await Promise.all([
    run(),
    run('copy', '--from', source),
    run('copy', '--from', source, '--to', 'memory:'),
    run('copy', '--from', 'mysql://somebody:secret@db/x', '--to', source),
  ])
  t.match(none, { code: 2, stderr: /A command is missing/ })
  t.match(half, { code: 2, stderr: /--to <url>/ })
  t.match(memory, { code: 2, stderr: /A memory: store ends with its process/ })
  t.match(unknown, { code: 2, stderr: /A store URL is/ })
  t.notMatch(unknown.stdout + unknown.stderr, 'secret')
})

// There is one version so far: no store is older than it.
await t.test('a store of a newer or an unknown version is neither copied nor copied into', async (t) => {
  const [unknown, newer, target] = [await duplicate(), await duplicate(), await places.vacant('sqlite')]
  const change = (url: string, sql: string) => {
    const database = new DatabaseSync(fileOf(url))
    database.exec(sql)
    database.close()
  }
  change(unknown, 'DELETE FROM migration')
  change(newer, `INSERT INTO migration VALUES (99, '099-of-tomorrow', 0, NULL)`)
  for (const [from, to] of [[unknown, target], [source, unknown]] as const) {
    await t.rejects(copy(from, to), { code: 'unreachable', message: /its settings are missing/ })
  }
  for (const [from, to] of [[newer, target], [source, newer]] as const) {
    await t.rejects(copy(from, to), { code: 'newer_schema' })
  }
  t.notOk(existsSync(fileOf(target)))
})

await t.test('an audit log with an impossible sequence number is not copied', async (t) => {
  const tampered = await duplicate()
  const database = new DatabaseSync(fileOf(tampered))
  database.exec(`INSERT INTO audit (sequence, id, at, actor, type, hash)
    VALUES (9223372036854775807, 'act_x', 0, 'x', 'x', '')`)
  database.close()
  await t.rejects(copy(tampered, await places.vacant('sqlite')), {
    code: 'refused',
    message: /audit verify names the first/,
  })
})

await t.test('an unreachable database is reported without its password', async (t) => {
  const url = 'postgres://somebody:s3cret-word@127.0.0.1:1/partners'
  const target = await places.vacant('sqlite')
  const attempts = [copy(source, url), copy(url, target), planned(source, url)]
  for (const attempt of await Promise.allSettled(attempts)) {
    t.match(attempt, { status: 'rejected', reason: { code: 'unreachable', message: /127\.0\.0\.1:1/ } })
    if (attempt.status === 'rejected') t.notMatch(attempt.reason.message, /s3cret|somebody/)
  }
  t.notOk(existsSync(fileOf(target)))
})

await t.test('a copy leaves the file of its source unchanged', async (t) => {
  const [from, target] = [await duplicate(), await places.vacant('sqlite')]
  const before = readFileSync(fileOf(from))
  t.match(await copy(from, target), { isFinished: true })
  t.ok(before.equals(readFileSync(fileOf(from))))
})
