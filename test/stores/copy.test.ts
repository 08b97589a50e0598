/** `store copy`: the copy equals its source, for all kinds of stores, or cannot be opened. */
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { verifyAuditLog } from '../../core/audit/verify.ts'
import { actor, apply, createKeys, industry, plan, profile, signup, T0 } from '../contract/store/samples.ts'
import { openSql, serverFor } from '../postgres/fixtures.ts'
import { until } from '../postgres/until.ts'
import { documentOf, ending, runProgram, startProgram } from '../support/cli-program.ts'
import { serve } from './copies/answers.ts'
import { fillStore } from './copies/full-store.ts'
import {
  copy,
  copyUpTo,
  fileOf,
  type Kind,
  openAt,
  openPlaces,
  type Stop,
  withStoreAt,
} from './copies/stores.ts'

const places = await openPlaces()
t.teardown(() => places.close())
const noServer = places.server === undefined && 'no server'

const first = await places.vacant('sqlite')
const world = await withStoreAt(first, fillStore)
const second = await places.vacant('sqlite')
const tables = await copy(first, second)

/** What every opening of a target says that was not finished. */
const unfinished = {
  code: 'refused',
  message: /a copy into it was not finished\. Drop it, .* start store copy again/,
}

await t.test('the command prints every table', async (t) => {
  const command = async (...more: readonly string[]) =>
    await runProgram(['store', 'copy', '--from', first, '--to', await places.vacant('sqlite'), ...more])
  const copied = await command()
  t.match(copied, { code: 0, stderr: /^The copy is complete and equal to its source, / })
  const [heading, ...rows] = copied.stdout.trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/))
  t.strictSame(heading, ['TABLE', 'ROWS', 'SHA-256'])
  t.strictSame(
    rows,
    tables.map(({ table, rows, sha256 }) => [table, rows.toLocaleString('en'), sha256.slice(0, 16)]),
  )
  t.strictSame(documentOf(await command('--json')).data, { tables, warnings: [] })
  t.ok(tables.every(({ rows, sha256 }) => rows > 0 && /^[0-9a-f]{64}$/.test(sha256)))
  t.equal(new Set(tables.map(({ sha256 }) => sha256)).size, tables.length)
})

await t.test('copies between all kinds of stores give equal responses', async (t) => {
  // Requests change counts: the first store is not served.
  const urls = [second]
  // Every kind is copied into every kind.
  const targets: readonly Kind[] = noServer ? ['sqlite'] : ['sqlite', 'postgres', 'postgres', 'sqlite']
  for (const kind of targets) {
    const target = await places.vacant(kind)
    t.strictSame(await copy(urls.at(-1)!, target), tables, kind)
    urls.push(target)
  }

  const services = []
  for (const url of urls) {
    const store = await openAt(url)
    services.push({ url, store, service: serve(store, world) })
  }
  const [original, ...copies] = services
  const responses = await original!.service.everything()
  t.match(responses['demo full: /partner/reports/summary?partner=demo'], /"signups":{"total":3,/)
  t.match(responses['demo revoked: verify-key'], /^401 .*key_revoked/)
  const page = await original!.service.page()
  const cursor: string = page.json.page.next_cursor
  t.equal(page.json.data.length, 7)
  const nextPage = await original!.service.page(cursor)
  const repeated = await original!.service.repeat()
  t.equal(repeated.headers.get('idempotent-replayed'), 'true')
  const audit = await verifyAuditLog(original!.store)
  t.match(audit, { brokenAt: undefined, differences: [] })

  for (const { url, store, service } of copies) {
    const kind = url.split(':')[0]
    t.strictSame(await service.everything(), responses, `the responses of ${kind}`)
    t.equal((await service.page(cursor)).text, nextPage.text, `a cursor is valid in ${kind}`)
    const replayed = await service.repeat()
    t.strictSame([replayed.status, replayed.text], [201, repeated.text], `a signup is replayed by ${kind}`)
    t.equal(replayed.headers.get('idempotent-replayed'), 'true')
    t.strictSame(await verifyAuditLog(store), audit, `the audit log of ${kind}`)
  }
  for (const { store, service } of services) {
    await service.close()
    await store.close()
  }
})

const stops: readonly Stop[] = [
  ['copying', 'settings'],
  ['copying', 'request_counts'],
  ['comparing', 'settings'],
  ['comparing', 'audit'],
]

/** A store with a row of most kinds. */
async function filled(kind: Kind = 'sqlite'): Promise<string> {
  const place = await places.vacant(kind)
  await withStoreAt(place, async (store) => {
    await createKeys(store, 'acme', 'globex')
    const slugs = ['root', 'child', 'education']
    const industries = slugs.map((slug, index) => industry(slug, { parentSlug: slugs[index - 1] }))
    await store.importContent('industries', industries, { now: T0, actor })
    await store.importContent('profiles', ['a', 'b', 'c'].map((slug) => profile(slug)), { now: T0, actor })
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

for (const kind of places.kinds) {
  await t.test(`every opening of a target in ${kind} that was not finished is refused`, async (t) => {
    for (const stop of stops) {
      const target = await places.vacant(kind)
      await copyUpTo(first, target, stop)
      await t.rejects(openAt(target), unfinished, stop.join(' '))
      await t.rejects(copy(first, target), unfinished, 'a copy into it')
      await t.rejects(copy(target, await places.vacant('sqlite')), unfinished, 'a copy from it')
    }
  })

  await t.test(`a store in ${kind} that was open while empty refuses to serve the copy`, async (t) => {
    const target = await places.vacant(kind)
    const open = await openAt(target)
    let seen: unknown
    await copy(
      first,
      target,
      async () => seen ??= await Promise.resolve().then(open.check).catch((error) => error),
    )
    t.match(seen, unfinished)
    await t.rejects(async () => await open.check(), { code: 'refused', message: /Start again/ })
    await open.close()
    await withStoreAt(target, async (store) => t.equal((await store.findPartner('demo'))?.slug, 'demo'))
  })

  await t.test(`a copy from or into ${kind} is refused, and writes nothing`, async (t) => {
    const vacant = await places.vacant('sqlite')
    const other = await filled(kind)
    const nowhere = await places.vacant(kind)
    await t.rejects(copy(nowhere, vacant), kind === 'sqlite' ? /no such file/ : { code: 'missing' })
    if (kind === 'sqlite') t.notOk(existsSync(fileOf(nowhere)))
    const used = { code: 'refused', message: /is in use already.*copied into an empty one/ }
    await t.rejects(copy(source, other), used)
    await withStoreAt(other, async (store) => t.equal((await store.findPartner('acme'))?.slug, 'acme'))
    t.notOk(existsSync(fileOf(vacant)))
  })
}

await t.test('a SQLite store that another process has open is not copied, and nobody opens one during a copy', async (t) => {
  const from = await duplicate()
  const target = await places.vacant('sqlite')
  const other = new DatabaseSync(fileOf(from))
  other.exec('SELECT 1 FROM store')
  const inUse = { code: 'refused', message: /Another process has .* open: stop it first/ }
  await t.rejects(copy(from, target), inUse)
  t.notOk(existsSync(fileOf(target)))
  other.close()
  let meanwhile: unknown
  await copy(from, target, () => {
    try {
      new DatabaseSync(fileOf(from), { timeout: 0 }).exec('UPDATE partner SET name = name')
    } catch (error) {
      meanwhile = error
    }
  })
  t.match(meanwhile, { message: /locked/ })
})

await t.test('servers of a PostgreSQL source', { skip: noServer }, async (t) => {
  const from = await filled('postgres')
  const target = await places.vacant('sqlite')
  const store = await openAt(from)
  const revalidate = async () => await store.revision()
  const register = async () => {
    const registration = store.replicas.register({
      name: 'web-1',
      leaseMs: 1_000,
      revalidateEveryMs: 1_000,
      revalidate,
      skewMs: () => 0,
    })
    await registration.registered()
    return registration
  }
  const refusal = { code: 'refused', message: /^Servers use the store .*: web-1\. Stop them first/ }
  await t.test('are refused before the copy', async (t) => {
    const registration = await register()
    await t.rejects(copy(from, target), refusal)
    t.notOk(existsSync(fileOf(target)))
    await registration.deregister()
  })
  await t.test('and after it', async (t) => {
    let registration: Awaited<ReturnType<typeof register>> | undefined
    await t.rejects(copy(from, target, async () => registration ??= await register()), refusal)
    await t.rejects(openAt(target), unfinished)
    await registration!.deregister()
  })
  await t.test('a change by a command is noticed', async (t) => {
    const another = await places.vacant('sqlite')
    let isChanged = false
    const changing = copy(from, another, async (_, table) => {
      if (table !== 'audit' || isChanged) return
      isChanged = true
      await apply(store, { type: 'partner.suspended', slug: 'globex' })
    })
    await t.rejects(changing, { code: 'refused', message: /was changed during the copy/ })
    await t.rejects(openAt(another), unfinished)
  })
  await t.test('a copy has one state of the source', async (t) => {
    const another = await places.vacant('sqlite')
    const sql = openSql(t, from)
    let isChanged = false
    await copy(from, another, async (doing, table) => {
      if (doing !== 'copying' || table !== 'settings' || isChanged) return
      isChanged = true
      await sql`update partner_api.partner set name = 'Later'`
    })
    await withStoreAt(another, async (store) => t.not((await store.findPartner('acme'))?.name, 'Later'))
  })
  await store.close()
})

await t.test('a copy whose server dies is not finished', { skip: noServer }, async (t) => {
  const server = await serverFor(t)
  const target = await server.createDatabase()
  let isDown: Promise<void> | undefined
  const dying = copy(first, target, (_doing, table) => {
    if (table === 'profiles') isDown ??= server.kill()
  })
  await t.rejects(dying, { code: 'unreachable' })
  await isDown
  await server.restart()
  await t.rejects(openAt(target), unfinished)
})

await t.test('a copy that was killed is refused by every command with one sentence', async (t) => {
  const target = await places.vacant('sqlite')
  await copyUpTo(source, target, ['copying', 'settings'])
  for (
    const command of [['partners', 'list'], ['migrate', '--key-prefix', 'other'], ['demo', '--no-serve']]
  ) {
    const ended = await runProgram([...command, '--store', target])
    t.match(
      ended,
      { code: 1, stderr: /^.*cannot be used.*was not finished\. Drop it.*\n$/ },
      command.join(' '),
    )
  }
  const killed = await places.vacant('sqlite')
  const program = startProgram(['store', 'copy', '--from', first, '--to', killed])
  await until(() => existsSync(fileOf(killed)) && isMarked(fileOf(killed)), 'the copy to begin')
  const ended = ending(program)
  program.kill('SIGKILL')
  await ended
  await t.rejects(openAt(killed), unfinished)
})

function isMarked(file: string): boolean {
  try {
    const database = new DatabaseSync(file, { readOnly: true })
    const row = database.prepare('SELECT is_incomplete FROM store').get()
    database.close()
    return row?.['is_incomplete'] === 1
  } catch {
    return false
  }
}

await t.test('a target that keeps something else is not finished', async (t) => {
  const target = await places.vacant('sqlite')
  await withStoreAt(target, () => Promise.resolve())
  const intruder = new DatabaseSync(fileOf(target))
  for (const event of ['INSERT', 'UPDATE']) {
    intruder.exec(`CREATE TRIGGER change_${event} AFTER ${event} ON partner WHEN new.slug = 'globex'
      BEGIN UPDATE partner SET name = 'Changed' WHERE slug = 'globex'; END`)
  }
  intruder.close()
  const differing = await runProgram(['store', 'copy', '--from', source, '--to', target])
  t.match(differing, {
    code: 1,
    stdout: '',
    stderr: /differs from .* in the table partners: 2 rows of 2, or other values/,
  })
  await t.rejects(openAt(target), unfinished)
})

await t.test('the command explains what it cannot copy', async (t) => {
  const run = (...args: readonly string[]) => runProgram(['store', ...args])
  const [none, half, memory, unknown, missing, same] = await Promise.all([
    run(),
    run('copy', '--from', source),
    run('copy', '--from', source, '--to', 'memory:'),
    run('copy', '--from', 'mysql://somebody:secret@db/x', '--to', source),
    run('copy', '--from', `${source}.none`, '--to', source),
    run('copy', '--from', source, '--to', source),
  ])
  t.match(none, { code: 2, stderr: /A command is missing/ })
  t.match(half, { code: 2, stderr: /--to <url>/ })
  t.match(memory, { code: 2, stderr: /A memory: store ends with its process/ })
  t.match(unknown, { code: 2, stderr: /A store URL is/ })
  t.notMatch(unknown.stdout + unknown.stderr, 'secret')
  t.match(missing, { code: 3, stderr: /There is no store at/ })
  t.match(same, { code: 2, stderr: /are the same file/ })
})

// There is one version so far: no store is older than it.
await t.test('a store of a newer or an unknown version is neither copied nor copied into', async (t) => {
  const unknown = await duplicate()
  const newer = await duplicate()
  const target = await places.vacant('sqlite')
  edit(unknown, 'DELETE FROM migration')
  edit(newer, `INSERT INTO migration VALUES (99, '099-of-tomorrow', 0, NULL)`)
  for (const [from, to] of [[unknown, target], [source, unknown]] as const) {
    await t.rejects(copy(from, to), { code: 'damaged', message: /its settings are missing/ })
  }
  for (const [from, to] of [[newer, target], [source, newer]] as const) {
    await t.rejects(copy(from, to), { code: 'newer_schema' })
  }
  t.notOk(existsSync(fileOf(target)))
})

function edit(url: string, sql: string): void {
  const database = new DatabaseSync(fileOf(url))
  database.exec(sql)
  database.close()
}

await t.test('what the audit log of a copy does not confirm is a warning', async (t) => {
  const tampered = await duplicate()
  const target = await places.vacant('sqlite')
  edit(
    tampered,
    `UPDATE partner SET name = 'Changed' WHERE slug = 'globex';
    INSERT INTO audit (sequence, id, at, actor, type, hash) VALUES (9223372036854775807, 'act_x', 0, 'x', 'x', '')`,
  )
  const copied = await runProgram(['store', 'copy', '--from', tampered, '--to', target, '--json'])
  t.match(copied, { code: 0, stderr: /warning: the audit log is broken at entry \d+, as in the source/ })
  t.match(documentOf(copied).data.warnings, [/broken at entry/])
})

await t.test('a value that no program could read from the copy is named', async (t) => {
  const values = ['partner.created_at', 'partner_key.expires_at', 'profile.published_at', 'signup.created_at']
  for (const place of values) {
    const from = await duplicate()
    const target = await places.vacant('sqlite')
    const [table, column] = place.split('.')
    edit(from, `UPDATE ${table} SET ${column} = 1152921504606846976`)
    t.match(await runProgram(['store', 'copy', '--from', from, '--to', target]), {
      code: 1,
      stdout: '',
      stderr: new RegExp(`: ${column} of the row \\["[\\w-]+"\\] in ${table} is 1152921504606846976, beyond`),
    })
    await t.rejects(openAt(target), unfinished)
  }
  const from = await duplicate()
  edit(from, "UPDATE partner SET created_at = 1152921504606846976 WHERE slug = 'acme'")
  t.match(await runProgram(['partners', 'list', '--store', from]), { code: 3, stderr: /cannot be read: / })
})

await t.test('the character U+0000 in a text', async (t) => {
  const from = await duplicate()
  edit(from, "UPDATE partner SET name = 'A' || char(0) || 'B' WHERE slug = 'globex'")
  const target = await places.vacant('sqlite')
  await copy(from, target)
  await withStoreAt(target, async (store) => t.equal((await store.findPartner('globex'))?.name, 'A\0B'))
  if (noServer) return
  await t.rejects(copy(from, await places.vacant('postgres')), {
    code: 'refused',
    message: /: name of the row \["globex"\] in partner has the character U\+0000\. Correct it, /,
  })
})

await t.test('an unreachable database is reported without its password', async (t) => {
  const url = 'postgres://somebody:s3cret-word@127.0.0.1:1/partners'
  const target = await places.vacant('sqlite')
  for (const attempt of await Promise.allSettled([copy(source, url), copy(url, target)])) {
    t.match(attempt, { status: 'rejected', reason: { code: 'unreachable', message: /127\.0\.0\.1:1/ } })
    if (attempt.status === 'rejected') t.notMatch(attempt.reason.message, /s3cret|somebody/)
  }
  t.notOk(existsSync(fileOf(target)))
})

await t.test('a copy leaves the file of its source unchanged', async (t) => {
  const from = await duplicate()
  const target = await places.vacant('sqlite')
  const before = readFileSync(fileOf(from))
  await copy(from, target)
  t.ok(before.equals(readFileSync(fileOf(from))))
})
