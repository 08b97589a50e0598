/** `store backup` and `store restore`. The trial `backup` repeats the drill under load. */
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { BUILT_IN_MODULES, MAX_OWN_MODULES } from '../../core/model.ts'
import { DAY } from '../contract/store/samples.ts'
import {
  documentOf,
  newFile,
  programOn,
  runProgram,
  startProgram,
  startServing,
  temporaryFolder,
} from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'

const issue = ['keys', 'issue', 'acme', '--name', 'n']

/** A store with a partner and keys. */
async function filled(keys: number) {
  const file = newFile()
  const program = programOn(`sqlite:${file}`)
  await program.run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'signup')
  const issued: { readonly id: string; readonly key: string }[] = []
  while (issued.length < keys) issued.push((await program.json(...issue)).data)
  const createWebhook = async (): Promise<string> => {
    const keyFile = `${file}.webhook-key`
    writeFileSync(keyFile, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 })
    const hook = ['--url', 'https://hooks.example', '--event', 'signup.created']
    return (await program.json('webhooks', 'create', ...hook, '--webhook-key-file', keyFile)).data.id
  }
  return { file, issued, createWebhook, backup: `${file}.backup`, ...program }
}

function edit(file: string, sql: string): void {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

const beside = (file: string) => readdirSync(dirname(file)).filter((name) => name !== basename(file)).sort()

test('a backup under load has every signup acknowledged before, and restores all keys', async (t) => {
  const { file, issued: [first, second, third, fourth], backup, run, json } = await filled(4)
  const served = await startServing(
    ['serve', '--port', '0', '--limit', 'signup=0', '--limit', 'key=0'],
    `sqlite:${file}`,
  )
  const acknowledged: string[] = []
  let isOver = false
  const signUp = async (sender: number): Promise<void> => {
    for (let number = 0; !isOver; number++) {
      const { status } = await fetch(`${served.url}/service/partner/signups`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-service-partner-key': first!.key,
          'idempotency-key': `test-${sender}-${number}`,
        },
        body: JSON.stringify({ partner: 'acme', email: `p${sender}.${number}@mail.example`, name: 'P' }),
      })
      if (status === 201) acknowledged.push(`p${sender}.${number}@mail.example`)
    }
  }
  const senders = [1, 2, 3, 4].map(signUp)
  while (acknowledged.length < 20) await new Promise((resolve) => setTimeout(resolve, 5))
  const before = [...acknowledged]
  const { data } = await json('store', 'backup', backup)
  t.match(data, { file: backup, partners: 1, keys: 4, bytes: statSync(backup).size, schema: Number })
  t.equal(data.signups >= before.length, true)
  t.equal(statSync(backup).mode & 0o777, process.platform === 'win32' ? 0o666 : 0o600)
  await run('keys', 'revoke', second!.id)
  await run('keys', 'rotate', fourth!.id, '--overlap', '0')
  await run('partners', 'suspend', 'acme')
  await run('partners', 'resume', 'acme')
  const lost = (await json(...issue)).data.id
  isOver = true
  await Promise.all(senders)

  t.match((await json('store', 'restore', backup, '--replace')).error, {
    code: 'refused',
    detail: /Another process has .* open/,
  })
  served.child.kill('SIGKILL')
  await served.ended
  const undone = {
    after: 5,
    entries: 6,
    commands: [
      `partner-api keys revoke ${second!.id}`,
      `partner-api keys rotate ${fourth!.id} --overlap 0`,
    ],
    lost: [String, lost],
  }
  const plan = await json('store', 'restore', backup, '--dry-run')
  t.match(plan.data, { dry_run: true, replaced: null, undone })
  t.equal((await json('keys', 'show', second!.id)).data.state, 'revoked')
  t.match(await json('store', 'restore', backup), { code: 1, error: { code: 'store_exists' } })
  const restored = await json('store', 'restore', backup, '--replace')
  t.match(restored.data, { dry_run: false, undone, seal: data.seal })
  const replaced = programOn(`sqlite:${restored.data.replaced}`)
  t.equal((await replaced.json('keys', 'show', second!.id)).data.state, 'revoked')

  t.match(await run('audit', 'verify', '--seal', data.seal), { code: 0 })
  const { stdout } = await run('signups', 'export')
  t.same(before.filter((email) => !stdout.includes(`"${email}"`)), [])
  const { data: listed } = await json('keys', 'list')
  t.same(listed.map(({ id, state }: { id: string; state: string }) => [id, state]), [
    ...[first!, second!, third!, fourth!].map(({ id }) => [id, 'active']),
  ])
})

test('restored webhooks start disabled, and what was done to them since is listed', async (t) => {
  const { file, backup, createWebhook, run, json } = await filled(1)
  const hooks: string[] = []
  while (hooks.length < 5) hooks.push(await createWebhook())
  const [removed, disabled, updated, rotated, kept] = hooks as [string, string, string, string, string]
  await run('store', 'backup', backup)
  await run('webhooks', 'remove', removed, '--yes')
  await run('webhooks', 'disable', disabled)
  await run('webhooks', 'update', updated, '--url', 'https://hooks.example/new')
  await run('webhooks', 'rotate-secret', rotated, '--webhook-key-file', `${file}.webhook-key`)
  await run('partners', 'update', 'acme', '--name', "It's", '--limit', 'key=5/60')
  const added = await createWebhook()

  const { data, stderr } = await json('store', 'restore', backup, '--replace')
  t.match(stderr, `partner-api webhooks remove ${removed} --yes`)
  t.same(data.disabled_webhooks.toSorted(), hooks.toSorted())
  t.same(data.undone.lost, [added])
  t.same(
    data.undone.commands.toSorted(),
    [
      "partner-api partners update acme '--name=It'\\''s' --limit key=5/60",
      ...[kept, updated, rotated].map((id) => `partner-api webhooks enable ${id}`),
      `partner-api webhooks rotate-secret ${rotated} --overlap 0`,
      `partner-api webhooks remove ${removed} --yes`,
      `partner-api webhooks update ${updated} --url https://hooks.example/new --event signup.created --allow-private`,
    ].sort(),
  )
  t.same(
    (await json('webhooks', 'list')).data.filter(({ state }: { state: string }) => state === 'active'),
    [],
  )
  t.match(await run('audit', 'verify', '--seal', data.seal), { code: 0 })
  const other = ['--store', `sqlite:${backup}`, 'store', 'reconcile']
  const again = await json(...other, '--replaced', `sqlite:${data.replaced}`)
  const commands = data.undone.commands.map((line: string) =>
    line.replace('api', `api --store sqlite:${backup}`)
  )
  t.same(again.data, {
    undone: { ...data.undone, commands },
    disabled_webhooks: data.disabled_webhooks,
    revoked_claims: 0,
  })
  t.match(await json(...other, '--replaced', `sqlite:${backup}`), { code: 2, error: { code: 'usage' } })
})

/**
 * Commands on a new key X of a new partner P before the backup, those after it, and the list of a restore where it differs.
 */
const changes: readonly (readonly [before: string, since: string, listed?: string])[] = [
  ['', 'keys revoke X'],
  ['keys revoke X', ''],
  ['', 'keys update X --name=-k --expires 2099-01-01T00:00:00.000Z --allow 192.0.2.0/24 2001:db8::/32'],
  ['keys update X --expires 2099-01-01 --allow 192.0.2.0/24', 'keys update X --never --clear-allow'],
  ['', 'keys limit X --limit key=5/60'],
  [
    'keys limit X --limit key=5/60 --limit signup=0',
    'keys limit X --limit key=6/60 --limit verify=7/60 --clear-limit signup',
  ],
  ['', 'modules activate P banner'],
  ['', 'modules activate P banner; scopes grant X read:banner; modules deactivate P banner'],
  ['modules activate P banner; scopes grant X read:banner', 'scopes remove X read:banner'],
  ['', 'modules deactivate P signup'],
  ['modules define P-old --scope read:old --feature Old', 'modules forget P-old'],
  ['', 'modules define own --scope read:own --feature=P; modules activate P own; scopes grant X read:own'],
  [
    'modules define P-a --scope read:a --feature=A; modules activate P P-a; scopes grant X read:a',
    'modules deactivate P P-a; scopes remove X read:a; modules forget P-a; modules define P-a --scope read:b --feature=B; ' +
    'modules activate P P-a; scopes grant X read:b',
  ],
  [
    'modules define P-c --scope read:c --feature=C; modules activate P P-c; scopes grant X read:c; keys disable X',
    'modules deactivate P P-c; modules forget P-c; modules define P-d --scope read:c --feature=C; keys enable X',
  ],
  ['', 'keys disable X'],
  ['keys disable X', 'keys enable X'],
  ['', 'keys rotate X --overlap 0'],
  ['', 'keys rotate X --overlap 100d; keys disable X'],
  ['keys disable X', 'keys enable X; keys rotate X --overlap 100d; keys disable X'],
  ['keys disable X', 'keys enable X; keys rotate X --overlap 100d'],
  ['', 'partners update P --name=New --limit key=5/60'],
  ['partners update P --limit key=5/60', 'partners update P --clear-limit key'],
  [
    '',
    'partners update P --contact=a@b.example --tag eu us --external-id=7 --note=N --self-service revoke rotate; ' +
    'keys update X --owner=O --tag shop',
  ],
  [
    'partners update P --contact=a@b.example --tag eu us --external-id=7 --note=N --self-service rotate; ' +
    'keys update X --owner=O --tag shop',
    'partners update P --no-contact --no-tag --no-external-id --no-note --no-self-service; ' +
    'keys update X --no-owner --no-tag',
  ],
  ['', 'partners suspend P'],
  ['partners suspend P', 'partners resume P'],
  ['', 'partners remove P --yes'],
  [
    'partners update P --contact=a@b.example --note=N',
    'partners update P --no-contact --no-note; partners remove P --yes',
  ],
  [
    'partners update P --contact=a@b.example --note=N; partners remove P --yes',
    'partners update P --no-contact --no-note',
  ],
  [
    '',
    'partners create P-new --name N --module banner; partners suspend P-new',
    'partners create P-new --name=N; modules activate P-new banner; partners suspend P-new',
  ],
]

test('every change since a backup is listed as the commands that repeat it', async (t) => {
  const { store, file, partners, issue, run, json } = await createStore()
  let now = Date.now() - 2 * DAY
  const earlier = createKeyAdministration(store, { actor: 'test', clock: () => now })
  const ended = { partner: 'acme', name: 'Ended', environment: 'live' as const }
  const prolonged = (await earlier.issue({ ...ended, expiresAt: now + DAY / 2 })).key.id
  const [expired, over] = [(await issue()).key.id, (await issue()).key.id]
  const rows = []
  for (const [index, [before, since, listed = since]] of changes.entries()) {
    const P = `partner-${index}`
    await partners.create({ slug: P, name: P, modules: ['signup'] })
    const { key: { id: X } } = await issue({ partner: P })
    const commandsOf = (text: string) =>
      text.split('; ').filter(Boolean).map((command) =>
        command.replaceAll(/\bX\b/g, X).replaceAll(/\bP\b/g, P).split(' ')
      )
    for (const command of commandsOf(before)) t.match(await run(...command), { code: 0 }, before)
    rows.push({ P, X, since: commandsOf(since), listed: commandsOf(listed).map((words) => words.join(' ')) })
  }
  const modules = createModuleAdministration(store, { actor: 'test' })
  const { length } = BUILT_IN_MODULES.names
  for (let count = (await modules.list()).length; count < length + MAX_OWN_MODULES; count++) {
    await modules.define({ name: `m${count}`, scope: `read:m${count}`, feature: 'One of many' })
  }
  await run('store', 'backup', `${file}.backup`)
  now += DAY / 4
  await earlier.update(prolonged, { expiresAt: null })
  await earlier.update(expired, { expiresAt: now + DAY })
  await earlier.rotate(over, { overlapMs: DAY })
  await earlier.disable(over)
  for (const { since } of rows) {
    for (const command of since) t.match(await run(...command), { code: 0 }, command.join(' '))
  }
  await store.close()

  const { data: { replaced, undone } } = await json('store', 'restore', `${file}.backup`, '--replace')
  const list: string[] = undone.commands.map((line: string) => line.replace('partner-api ', ''))
  for (const { P, X, listed } of rows) {
    const found = list.filter((line) => line.includes(X) || new RegExp(`\\b${P}\\b`).test(line))
    // Of 100 days, some seconds have passed.
    t.strictSame(found.map((line) => line.replace(/ 86\d{5}s$/, ' 100d')), listed)
  }
  t.ok(undone.lost.includes(prolonged))
  const ends = `keys update ${expired} --expires 1s`
  t.ok(list.includes(ends) && list.includes(`keys rotate ${over} --overlap 0`))
  t.equal(list.length, 2 + rows.flatMap(({ listed }) => listed).length, 'nothing else is listed')
  for (const line of list) t.match(await run(...line.split(' ')), { code: 0 }, line)
  const again = (await json('store', 'reconcile', '--replaced', `sqlite:${replaced}`)).data.undone
  t.same(again.commands.filter((line: string) => !line.endsWith(ends)), [], 'all of it is repeated')
})

test('a backup is a store, and replaces nothing by accident', async (t) => {
  const { file, backup, run, json, refuses } = await filled(1)
  t.match(await run('store', 'backup', backup), { code: 0, stdout: /^seal: +2:[0-9a-f]{64}$/m })
  t.same(beside(file).filter((name) => !/-(?:wal|shm)$/.test(name)), [basename(backup)])
  t.match(await programOn(`sqlite:${backup}`).run('partners', 'list'), { code: 0, stdout: /acme/ })
  await refuses(t, {
    [`store backup ${backup}`]: '1 file_exists',
    [`store backup ${file}`]: '2 usage',
    [`store backup ${file}-wal --force`]: '2 usage',
    [`store backup ${dirname(file)} --force`]: '2 usage',
    [`store restore ${file}`]: '2 usage',
    [`store restore ${file}.none`]: '3 store_missing',
    [`store backup ${file}.none/backup`]: '1 file_not_created',
    '--store memory: store backup unused': '2 usage',
    [`--store sqlite:${file}.none store backup unused`]: '3 store_missing',
  })
  t.match(await json('store', 'backup', backup, '--force'), { code: 0, data: { keys: 1 } })
  const other = `${file}.other`
  t.match(await programOn(`sqlite:${other}`).run('store', 'restore', backup), {
    code: 0,
    stderr: `Restored ${other}.\n`,
  })
})

test('a damaged backup is refused, and a damaged store is replaced', async (t) => {
  const { file, backup, run, json } = await filled(1)
  await run('store', 'backup', backup)
  const bytes = readFileSync(backup)
  writeFileSync(`${backup}.damaged`, bytes.fill(7, 20_000, 60_000))
  writeFileSync(`${backup}.foreign`, 'SQLite format 4')
  writeFileSync(`${backup}.empty`, '')
  // On Windows there is none.
  spawnSync('mkfifo', [`${backup}.pipe`])
  for (const end of ['damaged', 'foreign', 'empty', 'pipe']) {
    t.match(await run('store', 'restore', `${backup}.${end}`, '--replace'), { code: /^[13]$/ }, end)
  }
  t.match(await run('keys', 'list'), { code: 0, stdout: /acme/ })
  t.notMatch(beside(file).join(' '), /partial|replaced/)

  edit(backup, "UPDATE audit SET actor = 'other' WHERE sequence = 2")
  t.match((await json('store', 'restore', backup, '--replace')).error.detail, /broken at entry 2/)
  t.match(await json('--store', `sqlite:${backup}`, 'store', 'backup', `${backup}.2`), {
    code: 0,
    data: { warnings: [/broken at entry 2/] },
  })
  const forced = await json('--store', `sqlite:${file}.2`, 'store', 'restore', `${backup}.2`, '--force')
  t.match(forced, { code: 0, data: { warnings: [/entry 2/] } })

  await run('store', 'backup', backup, '--force')
  writeFileSync(file, 'damaged')
  appendFileSync(`${file}-wal`, 'damaged')
  const { data, stderr } = await json('store', 'restore', backup, '--replace')
  t.match(stderr, 'the changes that the restore undoes are unknown')
  t.equal(data.undone, null)
  t.equal(readFileSync(data.replaced, 'utf8'), 'damaged')
  t.match(await run('audit', 'verify', '--seal', data.seal), { code: 0 })
})

test('a store that contradicts its audit log is backed up with a warning, and not restored without --force', async (t) => {
  const { file, issued: [key], backup, run, json } = await filled(1)
  edit(file, `UPDATE partner_key SET scopes = 'read:plans'; CREATE INDEX mine ON partner (name)`)
  const { code, data, stderr } = await json('store', 'backup', backup)
  t.equal(code, 0)
  t.same(data.warnings, ['mine is not what this program creates', `key ${key!.id} contradicts the audit log`])
  t.match(stderr, /^warning: mine .*\nwarning: key /)
  t.match((await json('store', 'restore', backup, '--replace')).error, { code: 'refused', detail: 'mine' })
  edit(backup, 'DROP INDEX mine')
  t.match((await json('store', 'restore', backup, '--replace')).error, { code: 'refused', detail: key!.id })
  t.match(await json('store', 'restore', backup, '--replace', '--force'), {
    code: 0,
    data: { warnings: [/^key/] },
  })

  const endless = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
  for (
    const sql of [
      `DROP TABLE signup; CREATE VIEW signup AS ${endless}`,
      `CREATE TRIGGER trap AFTER UPDATE ON webhook BEGIN DELETE FROM partner WHERE 1 IN (${endless}); END`,
      'CREATE TABLE trap (i INTEGER CHECK (length(hex(zeroblob(1e9))) > i))',
    ]
  ) {
    await run('store', 'backup', backup, '--force')
    edit(backup, sql)
    t.match((await json('store', 'restore', backup, '--replace')).error, {
      code: 'refused',
      detail: /trap|signup/,
    }, sql)
  }
})

test('a backup of another build is refused', async (t) => {
  const { file, backup, run, json } = await filled(1)
  await run('store', 'backup', backup)
  // As a store of before the schema that this program creates.
  edit(
    backup,
    "UPDATE migration SET hash = 'other'; INSERT INTO migration VALUES (2, '002-key-usage', 0, 'other')",
  )
  const refusal = {
    code: 'refused',
    detail: /another build .* migration 001-store differs.* docs\/upgrade\.md/,
  }
  t.match((await json('store', 'restore', backup, '--replace')).error, refusal)
  edit(file, "UPDATE migration SET hash = 'other'")
  t.match((await json('store', 'backup', backup, '--force')).error, refusal)
})

test('an interrupted backup leaves nothing, and the next removes what a killed one has left', async (t) => {
  const { file, backup, run } = await filled(1)
  const rows =
    'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT * FROM n'
  edit(file, `CREATE TABLE filler (bytes BLOB); INSERT INTO filler SELECT zeroblob(100000) FROM (${rows})`)
  const child = startProgram(['--store', `sqlite:${file}`, 'store', 'backup', backup])
  const partial = `${backup}.${child.pid}.partial`
  const closed = new Promise<NodeJS.Signals | null>((resolve) =>
    child.on('close', (_, signal) => resolve(signal))
  )
  while (!existsSync(partial) && child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  child.kill('SIGINT')
  t.equal(await closed, 'SIGINT')
  t.notMatch(beside(file).join(' '), /backup/)
  // Of this process, of one that ended, and of one that runs.
  const left = [process.pid, child.pid, process.ppid].map((pid) => `${backup}.${pid}.partial`)
  for (const name of [...left, `${left[1]}-journal`, `${backup}.partial`]) writeFileSync(name, '')
  t.equal((await run('store', 'backup', backup)).code, 0)
  t.same(left.map((name) => existsSync(name)), [false, false, true])
  t.same([existsSync(`${left[1]}-journal`), existsSync(`${backup}.partial`)], [false, true])
})

test('for PostgreSQL, the tools to run are printed', async (t) => {
  const env = { PARTNER_API_STORE: 'postgres://u:hush@db.example:5433,10.0.0.2/shop?sslmode=require' }
  const file = join(temporaryFolder(), "it's.dump")
  for (const command of ['backup', 'restore']) {
    const ended = await runProgram(['store', command, file, '--json'], { env })
    const { error } = documentOf(ended)
    t.match(ended, { code: 1, stderr: '' })
    t.match(error, { code: 'postgres_tools', detail: 'db.example:5433,10.0.0.2:5432/shop' })
    const to = (user: string, database: string) =>
      `='host=db.example,10.0.0.2 port=5433,5432 user=${user} sslmode=require dbname=${database}' `
    t.match(
      error['commands'],
      command === 'backup' ? [to('u', 'shop')] : [
        `createdb --maintenance-db${to('postgres', 'postgres')}--owner=u partner_api_restored`,
        to('u', 'partner_api_restored'),
      ],
    )
    t.notMatch(ended.stdout, 'hush')
  }
  const odd = { PARTNER_API_STORE: 'postgres://o%27neil@db.example/my%20%5Cshop' }
  const { error: { commands } } = documentOf(
    await runProgram(['store', 'backup', 'd', '--json'], { env: odd }),
  )
  const [words] = (commands as string[]).map((line) => line.replace('pg_dump', "printf '%s\\n'"))
  t.match(
    execFileSync('sh', ['-c', words!], { encoding: 'utf8' }),
    String.raw`--dbname=host=db.example port=5432 user='o\'neil' sslmode=prefer dbname='my \\shop'`,
  )
  t.notOk(existsSync(file))
})
