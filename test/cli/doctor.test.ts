/** doctor: every check with a store or a machine that has the fault. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { importWebhookKey } from '../../adapters/webhooks/secrets.ts'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { CliCommand } from '../../cli/command.ts'
import { commands } from '../../cli/program.ts'
import type { NewKey } from '../../core/admin/key-plans.ts'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Webhook } from '../../core/ports/webhooks.ts'
import { hasServer } from '../postgres/binaries.ts'
import { createPlace, databasesFor, serverFor } from '../postgres/fixtures.ts'
import { newFile, programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

interface Result {
  readonly check: string
  readonly severity: string | null
  readonly message: string | null
  readonly command: string | null
}

const folder = temporaryFolder()
const now = Date.now()
const days = (count: number) => now - count * MS_PER_DAY

/** Runs doctor with `--json`. @returns Its exit code, and what it found: the severity and command by check. */
async function diagnose(
  store: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
) {
  const ended = await programOn(store, { env }).json('doctor', ...args)
  const checks: readonly Result[] = ended.data?.checks ?? []
  const found = checks.filter(({ severity }) => severity !== null)
  for (const { command } of found) if (command?.startsWith('partner-api ')) await parse(command)
  return {
    ...ended,
    checks,
    found: Object.fromEntries(found.map(({ check, severity, command }) => [check, `${severity} ${command}`])),
  }
}

/** Parses a command by the program's own definitions. @throws when there is no such command or option. */
async function parse(command: string): Promise<void> {
  const [, name = '', ...args] = command.split(' ')
  const silent = { writeOut() {}, writeErr() {}, outputError() {} }
  const run = { variables: new Map(), io: { env: {} } } as never
  const group = new CliCommand(name, run).exitOverride().configureOutput(silent)
  const { define } = await commands[name]!.load()
  define(group)
  for (const each of group.commands.length > 0 ? group.commands : [group]) each.action(() => {})
  await group.parseAsync(args, { from: 'user' })
}

/** Creates the partner acme in a store, SQLite by default. @returns The administration; `issue` makes a key of an age in days. */
async function fill(given?: Store) {
  const file = newFile()
  const store = given ?? await openSqliteStore(file)
  const partners = createPartnerAdministration(store, { actor: 'test' })
  await partners.create({ slug: 'acme', name: 'Acme', modules: ['profiles', 'banner'] })
  const keysAt = (age: number) => createKeyAdministration(store, { actor: 'test', clock: () => days(age) })
  const expiresAt = days(-365)
  const issue = (age: number, more: Partial<NewKey> = {}) =>
    keysAt(age).issue({ partner: 'acme', name: 'Key', environment: 'live', expiresAt, ...more })
  return { file, url: `sqlite:${file}`, store, partners, keys: keysAt(0), issue }
}

await test('a clean installation has no findings', async (t) => {
  const { file, url, store, issue } = await fill()
  await issue(0)
  const before = fs.readFileSync(file)
  const { code, found, checks } = await diagnose(url)
  t.same({ code, found }, { code: 0, found: {} })
  t.ok(checks.length >= 8)
  t.ok(before.equals(fs.readFileSync(file)))
  const text = await runProgram(['--store', url, 'doctor'])
  t.match(text, { code: 0, stdout: /^ok {7}audit-log$/m, stderr: /0 errors, 0 warnings/ })
  await store.close()
})

await test('webhooks', async (t) => {
  const { url, store } = await fill()
  const add = async (
    id: string,
    state: 'active' | 'disabled',
    failingSince?: number,
    secrets: Webhook['secrets'] = [],
  ) => {
    const target = { id, url: 'https://hook.example', events: ['key.issued'], partner: undefined } as const
    const webhook = { ...target, state, createdAt: now, secrets, failingSince }
    await store.webhooks.changeWebhook(id, 'webhook.created', { actor: 'test', at: now }, () => webhook)
  }
  const [text, otherText] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map((bytes) =>
    bytes.toString('base64')
  )
  const key = { PARTNER_API_WEBHOOK_KEY: text! }
  await add('whk_1', 'disabled')
  t.match((await diagnose(url, [], key)).found, { webhooks: 'warning partner-api webhooks enable whk_1' })
  await add('whk_2', 'active', now)
  t.match((await diagnose(url, [], key)).found, { webhooks: 'warning partner-api webhooks deliveries whk_2' })
  t.match((await diagnose(url)).found, {
    webhooks: 'warning partner-api doctor --webhook-key-file webhook.key',
  })
  await add('whk_3', 'active')
  const events = Array.from({ length: 1_000 }, (_, index) => (
    { id: `msg_${index}`, type: 'webhook.test', partner: undefined, createdAt: now, payload: '{}' } as const
  ))
  await store.webhooks.enqueue(events, 'whk_3')
  t.match((await diagnose(url, [], key)).found, { webhooks: 'warning partner-api webhooks test whk_3' })
  const file = join(folder, 'webhook.key')
  fs.writeFileSync(file, 'x', { mode: 0o644 })
  const { found } = await diagnose(url, [], { PARTNER_API_WEBHOOK_KEY_FILE: file })
  t.match(found, {
    'key-files': `error chmod 600 ${file}`,
    webhooks: 'warning partner-api doctor --webhook-key-file webhook.key',
  })
  const other = await importWebhookKey(otherText!)
  await add('whk_4', 'active', undefined, [{
    sealed: await other.seal('whsec_', 'whk_4'),
    expiresAt: undefined,
  }])
  const rotate = { check: 'webhooks', command: 'partner-api webhooks rotate-secret whk_4' }
  t.match((await diagnose(url, [], key)).checks.filter(({ check }) => check === 'webhooks')[0], rotate)
  const opened = await diagnose(url, [], { PARTNER_API_WEBHOOK_KEY: otherText! })
  t.notMatch(opened.stdout, 'rotate-secret')
  await store.close()
})

await test('indexes and the audit log', async (t) => {
  const { file, url, store, issue } = await fill()
  const { key } = await issue(0)
  await store.close()
  const database = new DatabaseSync(file)
  database.exec(`UPDATE partner_key SET name = 'Other' WHERE id = '${key.id}'; DROP INDEX signup_newest`)
  database.close()
  t.match((await diagnose(url)).found, {
    'audit-log': 'error partner-api audit verify',
    indexes: 'warning CREATE INDEX signup_newest ON signup (recency, id);',
  })
})

await test('the machine', async (t) => {
  const { file, url, store } = await fill()
  await store.close()
  fs.chmodSync(file, 0o640)
  fs.writeFileSync(`${file}-wal`, '')
  fs.truncateSync(`${file}-wal`, 65 * 1_048_576)
  const { statfsSync } = fs
  fs.statfsSync =
    ((path: string) => ({ ...statfsSync(path), bsize: 4_096, bavail: 256, blocks: 1e6 })) as never
  syncBuiltinESMExports()
  const { code, found } = await diagnose(url, ['--webhook-key-file', 'gone.key'])
  Object.assign(fs, { statfsSync })
  syncBuiltinESMExports()
  t.equal(code, 1)
  t.same(found, {
    'key-files': 'error ls -l gone.key',
    'store-files': `error chmod 600 ${file} ${file}-wal ${file}-shm`,
    'disk-space': `warning df -h ${join(file, '..')}`,
    'wal-size': `warning fuser -v ${file}`,
  })
})

await test('stores that cannot be checked', async (t) => {
  t.match(await runProgram(['--store', 'memory:', 'doctor']), { code: 2, stderr: /sqlite:FILE/ })
  t.match(await diagnose('sqlite:nowhere.db'), { code: 3, found: { store: 'error partner-api migrate' } })

  const { file, url, store } = await fill()
  await store.close()
  const database = new DatabaseSync(file)
  for (
    const [sql, name, found] of [
      [
        `INSERT INTO migration VALUES (99, '099-later', 0, NULL)`,
        'schema',
        'error npm install --global partner-api',
      ],
      ['UPDATE migration SET hash = NULL', 'store', 'error null'],
    ] as const
  ) {
    database.exec(sql)
    t.equal((await diagnose(url)).found[name], found, sql)
  }
  // As restored from a dump.
  database.exec('PRAGMA application_id = 0; PRAGMA journal_mode = DELETE')
  database.close()
  const before = fs.readFileSync(file)
  await diagnose(url)
  t.ok(before.equals(fs.readFileSync(file)), 'nothing is changed')
})

await test('PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const server = await serverFor(t, { settings: { fsync: 'on' } })
  const { store, url, sql } = await createPlace(t, server)
  const { issue } = await fill(store)
  await issue(0)
  const clean = await diagnose(url)
  t.same([clean.code, clean.found], [0, {}])

  const revalidate = async () => await store.revision()
  const more = { revalidate, revalidateEveryMs: 1_000, skewMs: () => -2_500 }
  const replica = store.replicas.register({ name: 'web-1', leaseMs: 6_000, ...more })
  await replica.registered()
  await sql`INSERT INTO partner_api.replica (id, name, lease_ms, facts, content, seen_at)
    SELECT 'x', 'web-2', 1000, 'old', content, seen_at FROM partner_api.replica`
  const dateNow = Date.now
  Date.now = () => dateNow() + 60_000
  const { code, found, stdout } = await diagnose(url.replace('127.0.0.1', '0.0.0.0'))
  Date.now = dateNow
  await replica.deregister()
  await sql`DELETE FROM partner_api.replica`
  t.equal(code, 1)
  t.same(found, {
    'store-clock': 'warning timedatectl set-ntp true',
    'server-clocks': 'warning timedatectl set-ntp true',
    'server-revisions': 'warning restart web-2',
    'server-staleness': 'warning partner-api serve --max-staleness 1000 --stale-if-error 0',
    'postgres-tls': 'warning sslmode=verify-full',
  })
  t.notMatch(stdout, server.password)

  await sql`GRANT SELECT ON partner_api.signup TO PUBLIC`
  await sql`DROP INDEX partner_api.signup_newest`
  const asSuperuser = await diagnose(server.adminUrl(new URL(url).pathname.slice(1)))
  const messages = asSuperuser.checks.filter(({ check }) => check === 'postgres-server').map(({ message }) =>
    message
  )
  t.match(messages, [/superuser postgres\.$/, /may read: signup\.$/])
  t.match(asSuperuser.found['indexes'], /CREATE INDEX signup_newest ON partner_api\.signup/)
  await sql`REVOKE SELECT ON partner_api.signup FROM PUBLIC`
  await sql.unsafe(asSuperuser.checks.find(({ check }) => check === 'indexes')!.command!)

  const risky = await createPlace(t, await databasesFor(t))
  t.match((await diagnose(risky.url)).found, { 'postgres-server': 'warning ALTER SYSTEM SET fsync = on' })
})
