/** What a restored store accepts: nothing that the replaced one refuses, on SQLite and PostgreSQL. */
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import postgres from 'postgres'
import { type Test, test } from 'tap'
import { openPostgresStore } from '../../adapters/stores/postgres/store.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { Store } from '../../core/ports/store.ts'
import { hasServer } from '../postgres/binaries.ts'
import { type Databases, useServer } from '../postgres/server.ts'
import { until } from '../postgres/until.ts'
import {
  clockAhead,
  documentOf,
  ending,
  newFile,
  programOn,
  runProcess,
  type Served,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

/** A key X of a partner P with two modules: commands before the backup, and those of the day after it. */
const day: readonly (readonly [before: string, since: string])[] = [
  ['', ''],
  ['', 'keys revoke X'],
  ['', 'keys disable X'],
  ['keys disable X', 'keys enable X'],
  ['', 'keys rotate X --overlap 0'],
  ['', 'keys rotate X --overlap 1s'],
  ['keys rotate X --overlap 9d', 'keys revoke X'],
  ['', 'keys update X --expires 1s'],
  ['keys update X --expires 9d', 'keys update X --never'],
  ['', 'keys update X --allow 192.0.2.0/24'],
  ['keys update X --allow 192.0.2.0/24', 'keys update X --clear-allow'],
  ['keys update X --allow 192.0.2.0/24 10.0.0.0/8', 'keys update X --allow 192.0.2.7 203.0.113.0/24'],
  ['keys update X --allow 10.0.0.0/8', 'keys update X --allow 192.0.2.0/24'],
  ['', 'scopes remove X read:plans'],
  ['scopes remove X read:plans', 'scopes grant X read:plans'],
  ['', 'modules deactivate P pricing'],
  ['modules deactivate P pricing', 'modules activate P pricing'],
  ['', 'partners suspend P'],
  ['partners suspend P', 'partners resume P'],
  ['', 'partners remove P --yes'],
  ['', 'partners update P --no-self-service'],
]

const paths = ['public/industries', 'public/plans']
const hosts = ['192.0.2.7', '192.0.2.8', '10.0.0.1', '203.0.113.1']

interface Place {
  readonly url: string
  open(url: string): Promise<Store>
  /** Copies the store while nothing has it open. */
  backUp(): Promise<void>
  /** Arguments that restore the backup, with `--store`. */
  readonly restore: readonly string[]
  /** The restored store, and where the replaced one is then. */
  readonly restored: string
  replaced(): string
}

type Issued = { readonly partner: string; readonly id: string; readonly key: string }

/** Which requests of keys a store admits, as text. Each key also asks whether it may rotate itself. */
async function admitted(store: Store, issued: readonly Issued[]): Promise<string[]> {
  const api = createPartnerApi({ store }, { limits: { authfail: { quota: 0, windowSeconds: 1 } } })
  const found: string[] = []
  for (const { partner, id, key } of issued) {
    for (const path of paths) {
      for (const hostname of hosts) {
        const headers = { 'x-service-partner-key': key }
        const request = new Request(`http://localhost/service/${path}?partner=${partner}`, { headers })
        const { status } = await api.fetch(request, { remoteAddr: { hostname } })
        if (status === 200) found.push(`${partner} ${id} ${path} ${hostname}`)
      }
    }
    const stored = (await store.findKey(id))?.partner
    for (const each of stored?.selfService ?? []) found.push(`${partner} ${each}`)
  }
  await api.close()
  return found
}

async function aDay(place: Place) {
  const { json } = programOn(place.url)
  const run = async (command: string): Promise<void> => {
    const { code, error } = await json(...command.split(' '))
    if (code !== 0) throw new Error(`${command}: ${error.detail}`)
  }
  const receiver = await startReceiver()
  const keyFile = `${newFile()}.webhook-key`
  writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
  await run(`migrate`)
  const issued: Issued[] = []
  const rows: { readonly since: readonly string[] }[] = []
  for (const [index, [before, since]] of day.entries()) {
    const partner = `partner-${index}`
    const commands = (text: string) =>
      text.split('; ').filter(Boolean)
        .map((command) => command.replaceAll(/\bX\b/g, id).replaceAll(/\bP\b/g, partner))
    await run(`partners create ${partner} --name P --module industries pricing --self-service rotate`)
    const { data: { id, key } } = await json('keys', 'issue', partner, '--name', 'K')
    issued.push({ partner, id, key })
    for (const command of commands(before)) await run(command)
    rows.push({ since: commands(since) })
  }
  const hook = `--url ${receiver.url} --event key.revoked --allow-private --webhook-key-file ${keyFile}`
  const { data: webhook } = await json('webhooks', 'create', ...hook.split(' '))
  const claim = [
    'keys',
    'issue',
    'partner-0',
    '--name',
    'C',
    '--claim',
    '9d',
    '--public-url',
    'http://localhost',
  ]
  const { data: { link } } = await json(...claim)
  await place.backUp()
  const { data: { sequence: after } } = await json('audit', 'seal')
  await run(`webhooks disable ${webhook.id}`)
  for (const { since } of rows) {
    for (const command of since) await run(command)
  }
  const lost = (await json('keys', 'issue', 'partner-0', '--name', 'Lost')).data
  issued.push({ partner: 'partner-0', ...lost })
  const { data: entries } = await json('audit', 'list', '--after', String(after))
  return { issued, receiver, keyFile, link: new URL(link).pathname, webhook: webhook.id, entries }
}

/** What the backup and the replaced store both admit. */
async function expectedOf(place: Place, backup: string, issued: readonly Issued[]) {
  const [before, since] = [await place.open(backup), await place.open(place.url)]
  try {
    const [was, is] = [await admitted(before, issued), await admitted(since, issued)]
    return was.filter((request) => is.includes(request))
  } finally {
    await before.close()
    await since.close()
  }
}

async function checkRestored(
  t: Test,
  place: Place,
  expected: string[],
  { issued, ...more }: Day,
): Promise<void> {
  const store = await place.open(place.restored)
  t.same(await admitted(store, issued), expected, 'what both stores admit')
  await store.close()
  const { json, run } = programOn(place.restored)
  t.match(await run('audit', 'verify'), { code: 0 })
  const { data: webhooks } = await json('webhooks', 'list')
  t.match(webhooks, [{ id: more.webhook, state: 'disabled' }])
  const served = await serveWebhooks(place.restored, more.keyFile)
  const claim = await fetch(served.url + more.link, { method: 'POST' })
  t.equal(claim.status, 410, 'the link is revoked')
  await json('keys', 'revoke', issued[0]!.id, '--wait')
  await stopServing(served)
  t.same(more.receiver.received, [], 'no webhook is called')
}

/** Starts a server that could call the receiver. */
function serveWebhooks(url: string, keyFile: string): Promise<Served> {
  const options = ['--allow-private-webhooks', '--webhook-key-file', keyFile]
  return startServing(['serve', '--port', '0', ...options], url)
}

type Day = Awaited<ReturnType<typeof aDay>>

function sqlitePlace(): Place {
  const file = newFile()
  const url = `sqlite:${file}`
  return {
    url,
    open: (url) => openSqliteStore(url.replace('sqlite:', ''), { migrate: false }),
    async backUp() {
      const { code, stderr } = await programOn(url).run('store', 'backup', `${file}.backup`)
      if (code !== 0) throw new Error(stderr)
    },
    restore: ['--store', url, 'store', 'restore', `${file}.backup`, '--replace'],
    restored: url,
    replaced: () => {
      const name = readdirSync(dirname(file)).find((name) => name.includes('replaced-'))
      return `sqlite:${dirname(file)}/${name}`
    },
  }
}

async function postgresPlace(server: Databases): Promise<Place> {
  const url = await server.createDatabase()
  const restored = await server.createDatabase()
  const [from, to] = [url, restored].map((each) => new URL(each).pathname.slice(1))
  return {
    url,
    open: (url) => openPostgresStore(url, { migrate: false }),
    // As pg_dump and pg_restore do.
    async backUp() {
      await server.dropDatabase(restored)
      await until(async () => {
        const { admin } = server
        const copying = admin`create database ${admin(to!)} owner ${admin(server.user)} template ${
          admin(from!)
        }`
        return await copying.then(() => true, () => false)
      }, 'the database to be free')
    },
    restore: ['--store', restored, 'store', 'reconcile', '--replaced', url],
    restored,
    replaced: () => url,
  }
}

async function restoreAfterADay(t: Test, place: Place, backup: string): Promise<void> {
  const changed = await aDay(place)
  t.teardown(changed.receiver.close)
  // The overlap and the expiry of a second are over.
  const { id } = changed.issued[5]!
  const { json } = programOn(place.url)
  await until(async () => (await json('keys', 'show', id)).data.state === 'expired', 'the overlap to end')
  const expected = await expectedOf(place, backup, changed.issued)
  t.ok(expected.length > 20)
  const { data, code } = await programOn(place.url).json(...place.restore)
  t.equal(code, 0)
  t.same(data.changes, changed.entries, 'the entries since the backup are printed')
  t.match(data, { mode: 'narrowed', disabled_webhooks: [changed.webhook], revoked_claims: 1 })
  await checkRestored(t, place, expected, changed)
}

/**
 * What is no administration: deliveries, idempotency, quotas and imported keys.
 *
 * @param left How many requests of a month of 8 are left, of which 3 came before the backup, and 1 since.
 */
async function restoreOfUse(t: Test, place: Place, left: number): Promise<void> {
  const { json } = programOn(place.url)
  const receiver = await startReceiver()
  t.teardown(receiver.close)
  const [keyFile, secretFile] = [`${newFile()}.webhook-key`, `${newFile()}.secret`]
  writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
  writeFileSync(secretFile, randomBytes(24).toString('base64'), { mode: 0o600 })
  await json('migrate')
  await json(
    'partners',
    'create',
    'acme',
    '--name',
    'A',
    '--module',
    'signup',
    'industries',
    '--limit',
    'month=8',
  )
  const { data: { key } } = await json('keys', 'issue', 'acme', '--name', 'K')
  const imported = ['kept', 'revoked'].map((name) => ({
    name,
    text: `old_${randomBytes(24).toString('hex')}`,
  }))
  const lines = imported.map(({ name, text }) => {
    const digest = createHmac('sha256', readFileSync(secretFile, 'utf8')).update(text.slice(4)).digest('hex')
    return JSON.stringify({ partner: 'acme', name, digest })
  })
  const scheme = ['--algorithm', 'hmac-sha256', '--prefix', 'old_', '--secret-file', secretFile]
  const importing = programOn(place.url, { input: lines.join('\n') })
  const { data: { lines: [, revoked] } } = await importing.json('keys', 'import', '-', ...scheme)
  const hook = `--url ${receiver.url} --event signup.created --allow-private --webhook-key-file ${keyFile}`
  const { data: webhook } = await json('webhooks', 'create', ...hook.split(' '))

  async function use<T>(url: string, work: (use: ReturnType<typeof requestsOf>) => Promise<T>): Promise<T> {
    const store = await place.open(url)
    const api = createPartnerApi({ store })
    const result = await work(requestsOf(api, key))
    await api.close()
    await store.close()
    return result
  }

  const first = await use(place.url, async ({ signUp, status }) => {
    t.same([await status(), await status()], [200, 200])
    return await signUp('first')
  })
  const deliveries = async (url: string): Promise<string[]> =>
    (await programOn(url).json('webhooks', 'deliveries', webhook.id)).data.map(({ id }: { id: string }) => id)
  const queued = await deliveries(place.url)
  t.equal(queued.length, 1)
  await place.backUp()
  const since = await use(place.url, ({ signUp }) => signUp('second'))
  await json('keys', 'revoke', revoked.id)
  t.match(await programOn(place.url).json(...place.restore), { code: 0 })

  await use(place.restored, async ({ signUp, status, verify }) => {
    t.same(await signUp('first'), { ...first, replayed: 'true' })
    const again = await signUp('second')
    t.match(again, { status: 201, replayed: null })
    t.not(again.id, since.id)
    t.same(await Promise.all(imported.map(({ text }) => verify(text))), [200, 401])
    for (let count = 0; count < left - 2; count++) t.equal(await status(), 200)
    t.equal(await status(), 429)
  })
  const { json: restored } = programOn(place.restored)
  await restored('webhooks', 'enable', webhook.id)
  t.same(await deliveries(place.restored), queued, 'while it was disabled, nothing was queued for it')
  const served = await serveWebhooks(place.restored, keyFile)
  await receiver.delivery(({ headers }) => headers['webhook-id'] === queued[0])
  await stopServing(served)
  t.equal(receiver.received.length, 1)
}

/** Requests of a key to a service. */
function requestsOf(api: PartnerApi, key: string) {
  const send = (path: string, init: RequestInit, text = key) => {
    const headers = { 'content-type': 'application/json', 'x-service-partner-key': text, ...init.headers }
    return api.fetch(new Request(`http://localhost/service/${path}`, { ...init, headers }))
  }
  return {
    status: async () => (await send('public/industries?partner=acme', {})).status,
    verify: async (text: string) => {
      const body = JSON.stringify({ partner: 'acme' })
      return (await send('developer/verify-key', { method: 'POST', body }, text)).status
    },
    async signUp(name: string) {
      const body = JSON.stringify({ partner: 'acme', email: `${name}@mail.example`, name })
      const init = { method: 'POST', body, headers: { 'idempotency-key': `idempotency-${name}` } }
      const response = await send('partner/signups', init)
      const { data } = await response.json()
      return {
        status: response.status,
        id: data?.id as string,
        replayed: response.headers.get('idempotent-replayed'),
      }
    },
  }
}

test('a store that is restored after a day of use', async (t) => {
  await restoreOfUse(t, sqlitePlace(), 4)
})

test('a store that is restored after a day of changes', async (t) => {
  const place = sqlitePlace()
  await restoreAfterADay(t, place, `${place.url}.backup`)
})

test('a restore that is killed at any step leaves the old store or the narrowed one', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  const { data: { id, key } } = await json('keys', 'issue', 'acme', '--name', 'K')
  await place.backUp()
  await run('keys', 'revoke', id)
  const file = place.url.replace('sqlite:', '')
  let isDone = false
  // Steps are changes of the folder's files: about forty.
  for (let steps = 1; !isDone; steps += 6) {
    const child = startProgram(place.restore)
    let count = 0
    const watcher = watch(dirname(file), () => ++count === steps && child.kill('SIGKILL'))
    const { code, signal, stderr } = await ending(child)
    watcher.close()
    isDone = signal === null
    t.equal(isDone ? code : signal, isDone ? 0 : 'SIGKILL', stderr)
    t.ok(existsSync(file))
    const store = await place.open(place.url)
    t.same(await admitted(store, [{ partner: 'acme', id, key }]), [], `killed at step ${steps}`)
    await store.close()
    if (isDone) t.ok(steps > 1, 'it was killed before')
  }
  t.notMatch(readdirSync(dirname(file)).join(' '), 'partial', 'what killed restores have left is removed')
})

test('--as-backed-up brings back what a mistaken revocation ended, and is audited', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  const issued: Issued[] = []
  while (issued.length < 3) {
    issued.push({ partner: 'acme', ...(await json('keys', 'issue', 'acme', '--name', 'K')).data })
  }
  await place.backUp()
  await run('keys', 'revoke', '--partner', 'acme', '--yes')
  const restore = [...place.restore, '--as-backed-up']
  t.match(await run(...restore), { code: 2, stderr: /accepted again\. Pass --yes to skip this prompt/ })
  const { data, code, stderr } = await json(...restore, '--yes')
  t.match({ code, data }, {
    code: 0,
    data: { mode: 'as_backed_up', narrowed: { keys: 0 }, since: { entries: 3 } },
  })
  t.match(stderr, /^warning: Keys and partners are as in the backup: /m)
  const store = await place.open(place.url)
  t.equal((await admitted(store, issued)).length, 3 * hosts.length)
  await store.close()
  const { data: entries } = await json('audit', 'list')
  t.match(entries.at(-1), {
    type: 'store.restored',
    before: { sequence: 7 },
    after: { mode: 'as_backed_up', sequence: 4 },
  })
})

test('a store without an entry of the backup is not replaced without --force', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme')
  await place.backUp()
  const other = `sqlite:${newFile()}`
  await programOn(other).run('partners', 'create', 'other', '--name', 'Other')
  const restore = [
    '--store',
    other,
    'store',
    'restore',
    `${place.url.replace('sqlite:', '')}.backup`,
    '--replace',
  ]
  t.match(await json(...restore), {
    code: 1,
    error: { code: 'replaced_unrelated', detail: /no entry in common/ },
  })
  t.match((await programOn(other).json('partners', 'list')).data, [{ slug: 'other' }])
  t.match(await json(...restore, '--force'), { code: 0, data: { mode: 'unknown', changes: [] } })
  t.match((await programOn(other).json('partners', 'list')).data, [{ slug: 'acme' }])
})

test('a clock that is ahead during a restore leaves no link open', async (t) => {
  const place = sqlitePlace()
  const { run, json } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
  const claim = ['--claim', '12h', '--public-url', 'http://localhost']
  const { data: { link } } = await json('keys', 'issue', 'acme', '--name', 'K', ...claim)
  await place.backUp()
  const ended = await runProcess([...place.restore, '--json'], clockAhead(86_400_000))
  t.match(documentOf(ended), { data: { revoked_claims: 1 } })
  const store = await place.open(place.url)
  const api = createPartnerApi({ store })
  t.equal((await api.fetch(new Request(link, { method: 'POST' }))).status, 410)
  await api.close()
  await store.close()
})

test('a restore and a backup write where a link leads, also to a file that is not there', async (t) => {
  const place = sqlitePlace()
  const { run } = programOn(place.url)
  await run('partners', 'create', 'acme', '--name', 'Acme')
  await place.backUp()
  const [folder, backup] = [temporaryFolder(), `${place.url.replace('sqlite:', '')}.backup`]
  const links = { store: 'data/store.db', backup: 'data/backup.db', lost: 'none/store.db', circle: 'circle' }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, `${folder}/${name}`)
  mkdirSync(`${folder}/data`)
  t.match(await run('--store', `sqlite:${folder}/store`, 'store', 'restore', backup), { code: 0 })
  t.match(await run('store', 'backup', `${folder}/backup`), { code: 0 })
  for (const name of ['store', 'backup'] as const) {
    t.ok(lstatSync(`${folder}/${name}`).isSymbolicLink(), name)
    t.match(await programOn(`sqlite:${folder}/${links[name]}`).json('partners', 'list'), {
      data: [{ slug: 'acme' }],
    })
  }
  for (const name of ['lost', 'circle']) {
    t.match(await programOn(`sqlite:${folder}/${name}`).json('store', 'restore', backup), {
      code: 1,
      error: { code: 'file_not_created', detail: /^Nothing was changed: / },
    })
  }
  t.notOk(existsSync(`${folder}/none`))
})

test('on PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await useServer()
  t.teardown(() => server.close())

  await t.test('a store that is restored after a day of changes', async (t) => {
    const place = await postgresPlace(server)
    await restoreAfterADay(t, place, place.restored)
  })

  await t.test('a store that is restored after a day of use', async (t) => {
    await restoreOfUse(t, await postgresPlace(server), 5)
  })

  await t.test('a reconciliation that is killed has changed nothing, and can be repeated', async (t) => {
    const place = await postgresPlace(server)
    const { run, json } = programOn(place.url)
    await run('migrate')
    await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
    const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'K')
    await place.backUp()
    await run('keys', 'revoke', id)
    const restored = programOn(place.restored)
    const seal = (await restored.json('audit', 'seal')).data
    const { admin } = server
    const sql = postgres(server.adminUrl(new URL(place.restored).pathname.slice(1)), { max: 1 })
    t.teardown(() => sql.end({ timeout: 0 }))
    // Keys are narrowed before partners.
    const lock = await sql.reserve()
    await lock`BEGIN`
    await lock`LOCK TABLE partner_api.partner`
    const child = startProgram(place.restore)
    const name = new URL(place.restored).pathname.slice(1)
    const waiting = () =>
      admin`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = ${name}`
    await until(async () => (await waiting()).length > 0, 'the reconciliation to wait')
    child.kill('SIGKILL')
    await once(child, 'close')
    await lock`ROLLBACK`
    lock.release()
    await until(async () => (await waiting()).length === 0, 'its transaction to end')
    t.same((await restored.json('audit', 'seal')).data, seal)
    t.match(documentOf(await runProcess([...place.restore, '--json'])), { data: { narrowed: { keys: 1 } } })
    t.equal((await restored.json('keys', 'show', id)).data.state, 'revoked')
  })

  await t.test('a replaced store that cannot be read needs --force', async (t) => {
    const place = await postgresPlace(server)
    await programOn(place.url).run('migrate')
    await place.backUp()
    const gone = await server.createDatabase()
    const { json } = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', gone]
    t.match(await json(...reconcile), {
      code: 3,
      error: { code: 'replaced_unreadable', detail: /pass --force/ },
    })
    t.match(await json(...reconcile, '--force'), { code: 0, data: { mode: 'unknown', since: null } })
    t.match(await json('store', 'reconcile', '--replaced', place.restored), {
      code: 2,
      error: { code: 'usage' },
    })
    const file = `sqlite:${newFile()}`
    t.match(await json('store', 'reconcile', '--replaced', file), {
      code: 2,
      error: { detail: /for SQLite/ },
    })
    t.match(await json(...reconcile, '--as-backed-up'), { code: 2, error: { code: 'usage' } })
  })

  /** A store with a partner and a key, and its backup. */
  async function backedUp() {
    const place = await postgresPlace(server)
    const { run, json } = programOn(place.url)
    await run('migrate')
    await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'industries')
    const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'K')
    await place.backUp()
    const restored = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', place.url]
    return { place, run, json, id: id as string, restored, reconcile }
  }

  await t.test('a reconciliation with the stores swapped is refused', async (t) => {
    const { place, run, json, restored, reconcile } = await backedUp()
    t.match(await restored.json(...reconcile), { code: 0 })
    t.match(await restored.json(...reconcile), { code: 0 }, 'one that is repeated is not')
    await place.backUp()
    const { data: { id } } = await json('keys', 'issue', 'acme', '--name', 'Since')
    const swapped = ['store', 'reconcile', '--replaced', place.restored]
    for (const more of [[], ['--force'], ['--as-backed-up', '--yes']]) {
      t.match(await json(...swapped, ...more), {
        code: 1,
        error: {
          code: 'replaced_older',
          detail: /^Nothing was changed: .* are --store and --replaced swapped\?/,
        },
      })
    }
    t.match(await json('keys', 'show', id), { data: { state: 'active' } })
    t.match(await run('keys', 'revoke', id), { code: 0 })
    t.match(await restored.json(...reconcile), { code: 0, data: { since: { entries: 2 } } })
  })

  await t.test('one database under two names is not reconciled with itself', async (t) => {
    const { place, json } = await backedUp()
    const { data: seal } = await json('audit', 'seal')
    const hosts = `${server.host}:${server.port}`
    const other = place.url.replace(hosts, `${hosts},${hosts}`)
    t.match(await json('store', 'reconcile', '--replaced', other), {
      code: 2,
      error: { code: 'usage', detail: /are the same store/ },
    })
    t.match(await json('store', 'copy', '--from', place.url, '--to', other), {
      code: 1,
      error: { code: 'refused', detail: /is the source/ },
    })
    t.same((await json('audit', 'seal')).data, seal)
  })

  await t.test('a replaced store that is administered meanwhile is not lost', async (t) => {
    const { place, run, id, restored } = await backedUp()
    const seal = (await restored.json('audit', 'seal')).data
    const { admin } = server
    const sql = postgres(server.adminUrl(new URL(place.restored).pathname.slice(1)), { max: 1 })
    t.teardown(() => sql.end({ timeout: 0 }))
    // Keys are narrowed before partners.
    const lock = await sql.reserve()
    await lock`BEGIN`
    await lock`LOCK TABLE partner_api.partner`
    const reconciling = runProcess([...place.restore, '--json', '--force'])
    const name = new URL(place.restored).pathname.slice(1)
    const waiting = () =>
      admin`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = ${name}`
    await until(async () => (await waiting()).length > 0, 'the reconciliation to wait')
    t.match(await run('keys', 'revoke', id), { code: 0 })
    await lock`ROLLBACK`
    lock.release()
    t.match(documentOf(await reconciling).error, {
      code: 'replaced_changed',
      detail: /^Nothing was changed: /,
    })
    t.same((await restored.json('audit', 'seal')).data, seal)
    t.match(await runProcess(place.restore), { code: 0 })
    t.match(await restored.json('keys', 'show', id), { data: { state: 'revoked' } })
  })

  await t.test('a restored store that servers use is not reconciled', async (t) => {
    const place = await postgresPlace(server)
    await programOn(place.url).run('migrate')
    const register = async (url: string, name: string) => {
      const sql = postgres(url, { max: 1 })
      await sql`INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
        VALUES (${name}, ${name}, 1000, '', '', floor(extract(epoch FROM clock_timestamp()) * 1000))`
      await sql.end()
    }
    await register(place.url, 'of-the-dump')
    await place.backUp()
    const { json } = programOn(place.restored)
    const reconcile = ['store', 'reconcile', '--replaced', place.url]
    t.match(await json(...reconcile), { code: 0 })
    await register(place.restored, 'web-1')
    t.match(await json(...reconcile), {
      code: 1,
      error: { code: 'refused', detail: /^Servers use .*: web-1\. Stop/ },
    })
  })
})
