/** `store backup` and `store restore`. The trial `backup` repeats the drill under load. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'tap'
import { copyStore } from '../../adapters/stores/sql/copy.ts'
import { openForReplacement } from '../../adapters/stores/sqlite/backup.ts'
import { openSqliteCopy } from '../../adapters/stores/sqlite/copy.ts'
import { until } from '../postgres/until.ts'
import {
  documentOf,
  ending,
  newFile,
  preload,
  programOn,
  runProgram,
  startProgram,
  startServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const issue = ['keys', 'issue', 'acme', '--name', 'n']

/** A store with a partner and keys. */
async function filled(keys: number) {
  const file = newFile()
  const program = programOn(`sqlite:${file}`)
  await program.run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'signup')
  const issued: { readonly id: string; readonly key: string }[] = []
  while (issued.length < keys) issued.push((await program.json(...issue)).data)
  return { file, issued, backup: `${file}.backup`, ...program }
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
  const since = [
    'key.revoked',
    'key.issued',
    'key.rotated',
    'partner.suspended',
    'partner.resumed',
    'key.issued',
  ]
  const found = {
    since: { after: 5, entries: 6 },
    changes: since.map((type) => ({ type })),
    narrowed: { partners: 0, keys: 2 },
  }
  const plan = await json('store', 'restore', backup, '--dry-run')
  t.match(plan.data, { dry_run: true, replaced: null, ...found })
  t.match(plan.stderr, /^Dry run: nothing was changed\.\nA restore would narrow 2 keys to what the present/)
  t.match(plan.stderr, /^warning: The backup lacks 2 keys issued since, .*: they would no longer work\.$/m)
  t.match(plan.stderr, /^The present store has 6 changes since the backup, which a restore would not keep: /m)
  t.notMatch(plan.stderr, /Narrowed|Restored|issue others/)
  t.equal((await json('keys', 'show', second!.id)).data.state, 'revoked')
  t.match(await json('store', 'restore', backup), { code: 1, error: { code: 'store_exists' } })
  const restored = await json('store', 'restore', backup, '--replace')
  t.match(restored.data, { dry_run: false, ...found, seal: data.seal })
  t.match(restored.stderr, /^warning: The backup lacks 2 keys issued since, .*: issue others/m)
  t.match(restored.stderr, /^The replaced store has 6 changes since the backup: .* audit list --after 5$/m)
  const replaced = programOn(`sqlite:${restored.data.replaced}`)
  t.equal((await replaced.json('keys', 'show', lost)).data.state, 'active')

  t.match(await run('audit', 'verify', '--seal', data.seal), { code: 0 })
  const { stdout } = await run('signups', 'export')
  t.same(before.filter((email) => !stdout.includes(`"${email}"`)), [])
  const { data: listed } = await json('keys', 'list')
  t.same(listed.map(({ id, state }: { id: string; state: string }) => [id, state]), [
    [first!.id, 'active'],
    [second!.id, 'revoked'],
    [third!.id, 'active'],
    [fourth!.id, 'revoked'],
  ])
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
    stderr: /^Restored .*\.\nwarning: There is no replaced store: revocations since the backup are unknown/,
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
  writeFileSync(`${backup}.check`, readFileSync(backup))
  edit(
    `${backup}.check`,
    "PRAGMA ignore_check_constraints = ON; UPDATE partner_key SET environment = 'other'",
  )
  t.match(await json('store', 'restore', `${backup}.check`, '--replace', '--force'), {
    code: 1,
    error: { code: 'refused', detail: /check is damaged: CHECK constraint failed in partner_key\.$/ },
  })
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
  const unreadable = await json('store', 'restore', backup, '--replace')
  t.match(unreadable, {
    code: 3,
    error: { code: 'replaced_unreadable', detail: /is not a database.* pass --force/ },
  })
  t.equal(readFileSync(file, 'utf8'), 'damaged')
  const { data, stderr } = await json('store', 'restore', backup, '--replace', '--force')
  t.match(stderr, /^warning: .* cannot be read: revocations since the backup are unknown/m)
  t.match(data, { mode: 'unknown', since: null, changes: [] })
  t.equal(readFileSync(data.replaced, 'utf8'), 'damaged')
  t.match(await run('audit', 'verify', '--seal', data.seal), { code: 0 })
})

/** Changes the name of all partners in a write-ahead log, which stays beside the file. */
function leaveJournal(file: string): void {
  const script = `
    const { DatabaseSync } = require('node:sqlite')
    new DatabaseSync(process.argv[1]).exec("PRAGMA journal_mode = WAL; UPDATE partner SET name = 'Journal'")
    process.kill(process.pid, 'SIGKILL')`
  spawnSync('node', ['--eval', script, file])
}

test('a journal that a killed process has left is not applied to what replaces its file', async (t) => {
  const { file, backup, run, json } = await filled(1)
  await run('store', 'backup', backup)

  leaveJournal(file)
  renameSync(file, `${file}.moved`)
  t.ok(existsSync(`${file}-wal`))
  t.match(await run('store', 'restore', backup), { code: 0 })
  t.match((await json('partners', 'list')).data, [{ name: 'Acme' }])
  const kept = beside(file).filter((name) => /replaced-.*-wal$/.test(name))
  t.equal(kept.length, 1, 'it is kept, since it may have changes that the moved file lacks')

  leaveJournal(backup)
  t.ok(existsSync(`${backup}-wal`))
  t.match(await run('store', 'backup', backup, '--force'), { code: 0 })
  t.match((await json('--store', `sqlite:${backup}`, 'partners', 'list')).data, [{ name: 'Acme' }])
})

test('a replaced store that is empty, or has values that cannot be read, needs --force', async (t) => {
  const { file, backup, run, json } = await filled(1)
  await run('store', 'backup', backup)
  const damages: Readonly<Record<string, () => void>> = {
    'is empty': () => writeFileSync(file, ''),
    'no such table': () => edit(file, 'DROP TABLE store'),
    'the row acme of partner: .* in JSON': () => edit(file, "UPDATE partner SET limits = '{'"),
    'the row \\w+ of partner_key: expires_at is 1152921504606846976, beyond': () =>
      edit(file, 'UPDATE partner_key SET expires_at = 1152921504606846976'),
  }
  for (const [reason, damage] of Object.entries(damages)) {
    damage()
    const { code, error } = await json('store', 'restore', backup, '--replace')
    t.match({ code, error }, { code: 3, error: { code: 'replaced_unreadable', detail: new RegExp(reason) } })
    t.notMatch(error.detail, 'Unexpected')
    t.match(await json('store', 'restore', backup, '--replace', '--force'), {
      code: 0,
      data: { mode: 'unknown' },
    })
  }
})

test('of two restores at once, one replaces nothing', async (t) => {
  const { file, backup, run } = await filled(1)
  await run('store', 'backup', backup)
  const restore = ['--store', `sqlite:${file}.other`, 'store', 'restore', backup]
  const ended = await Promise.all([1, 2].map(() => ending(startProgram(restore))))
  t.same(ended.map(({ code }) => code).sort(), [0, 1])
  t.notMatch(beside(file).join(' '), /partial|replaced/)
})

/** Has a program wait before it locks a file, until there is a file `go`; it has written `ready` then. */
function waitingToLock(ready: string, go: string) {
  return preload(`
    import { existsSync, writeFileSync } from 'node:fs'
    import { DatabaseSync } from 'node:sqlite'
    const { exec } = DatabaseSync.prototype
    DatabaseSync.prototype.exec = function (sql) {
      if (sql.includes('EXCLUSIVE')) {
        writeFileSync(${JSON.stringify(ready)}, '')
        while (!existsSync(${
    JSON.stringify(go)
  })) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
      return exec.call(this, sql)
    }`)
}

test('a restore that opened the store before another replaced it changes nothing', async (t) => {
  const { file, issued: [key], backup, run, json } = await filled(1)
  await run('store', 'backup', backup)
  const ready = `${file}.ready`
  const go = `${file}.go`
  const restore = ['--store', `sqlite:${file}`, 'store', 'restore', backup, '--replace', '--force', '--json']
  const second = ending(startProgram(restore, waitingToLock(ready, go)))
  await until(() => existsSync(ready), 'the second restore to open the store')
  t.match(await run('store', 'restore', backup, '--replace'), { code: 0 })
  await run('keys', 'revoke', key!.id)
  writeFileSync(go, '')
  const ended = await second
  t.match(ended, { code: 1 })
  t.match(documentOf(ended).error, { code: 'refused', detail: /Another process has created or replaced/ })
  t.match((await json('keys', 'show', key!.id)).data, { state: 'revoked' })
})

test('a copy of a store that was opened before a restore replaced it is refused', async (t) => {
  const { file, backup, run } = await filled(1)
  await run('store', 'backup', backup)
  const source = openSqliteCopy(file, { create: false })
  t.match(await run('store', 'restore', backup, '--replace'), { code: 0 })
  const target = () => Promise.resolve(openSqliteCopy(`${file}.copy`, { create: true }))
  await t.rejects(copyStore(source, target), { code: 'refused', message: /has created or replaced/ })
  await source.close()
  t.notOk(existsSync(`${file}.copy`))
})

test('a store that cannot be read, and that another restore replaces meanwhile, is not replaced again', async (t) => {
  const { file, backup, run } = await filled(1)
  await run('store', 'backup', backup)
  writeFileSync(file, 'damaged')
  const target = openForReplacement(file, { isThere: true, lock: true })
  t.match(target.failure, { code: 'unreachable' })
  t.match(await run('store', 'restore', backup, '--replace', '--force'), { code: 0 })
  t.throws(() => target.replaceBy(backup, `${file}.kept`), { code: 'refused' })
  t.match(await run('partners', 'list'), { code: 0, stdout: /acme/ })
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
    "UPDATE migration SET hash = 'other'; INSERT INTO migration VALUES (2, '002-of-before', 0, 'other')",
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

test('what a killed restore has left cannot be used, and the next one removes it', async (t) => {
  const { file, issued: [key], backup, run, json } = await filled(1)
  await run('store', 'backup', backup)
  await run('keys', 'revoke', key!.id)
  const killed = preload(`
    import { DatabaseSync } from 'node:sqlite'
    const { exec } = DatabaseSync.prototype
    DatabaseSync.prototype.exec = function (sql) {
      const isCopy = this.location()?.endsWith('.partial')
      if (isCopy && sql.includes('BEGIN')) process.kill(process.pid, 'SIGKILL')
      return exec.call(this, sql)
    }`)
  const restore = ['--store', `sqlite:${file}`, 'store', 'restore', backup, '--replace']
  t.match(await ending(startProgram(restore, killed)), { signal: 'SIGKILL', stderr: '' })
  t.match((await json('keys', 'show', key!.id)).data, { state: 'revoked' })
  const [left = ''] = beside(file).filter((name) => name.endsWith('.partial'))
  const partial = join(dirname(file), left)
  const { refuses } = programOn(`sqlite:${partial}`)
  await refuses(t, {
    'keys list': '1 refused',
    'serve --port 0': '1 refused',
    'store backup unused': '1 refused',
    [`store restore ${partial} --store sqlite:${file}.other`]: '1 refused',
    [`store copy --from sqlite:${partial} --to sqlite:${file}.other`]: '1 refused',
  })
  t.notOk(existsSync(`${file}.other`))
  t.match(await run('store', 'restore', backup, '--replace'), { code: 0 })
  t.notOk(existsSync(partial))
  t.match((await json('keys', 'show', key!.id)).data, { state: 'revoked' })
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
