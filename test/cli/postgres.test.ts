/** New stores, and the program on a PostgreSQL store: errors, and hidden passwords. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import postgres from 'postgres'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { freePort } from '../postgres/free-port.ts'
import { type Databases, useServer } from '../postgres/server.ts'
import {
  ending,
  newFile,
  programOn,
  runProgram,
  startProgram,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()
const write = (name: string, line: object): string => {
  writeFileSync(join(folder, name), JSON.stringify(line))
  return join(folder, name)
}
test('a new SQLite store', (t) => newStore(t, `sqlite:${newFile()}`))

test('the program on Postgres', { skip: hasServer() ?? false, jobs: 4 }, async (t) => {
  const server = await useServer()
  t.teardown(() => server.close())
  const parts = {
    'a new store': async (t: Test) => newStore(t, await server.createDatabase()),
    'a password': password,
    'stores that cannot be used': unusable,
    'a server that is down': down,
  }
  // Most of the time is spent waiting.
  await Promise.all(
    Object.entries(parts).map(([name, part]) => t.test(name, { buffered: true }, (t) => part(t, server))),
  )
})

function placeOf(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return protocol === 'sqlite:' ? pathname : host + pathname
}

/** Only commands that create a store create one; then, operators work on it. */
async function newStore(t: Test, url: string): Promise<void> {
  const { run, json, refuses } = programOn(url)
  const good = write('industries.jsonl', { slug: 'travel', name: 'Travel' })
  const bad = write('bad.jsonl', { slug: 'travel' })
  const dry = await json('content', 'import', 'industries', good, '--dry-run')
  t.match(dry.data, { created: 1, dry_run: true })
  await refuses(t, {
    'partners list': '3 store_missing',
    'partners suspend acme': '3 store_missing',
    'modules list acme': '3 store_missing',
    'migrate --status': '3 store_missing',
    'content export plans': '3 store_missing',
    'explain --key-id Zt81mQv04KsD --partner acme GET /service/public/plans': '3 store_missing',
    [`content import industries ${bad}`]: '1 invalid_content',
    'migrate --key-prefix A_': '2 usage',
    'migrate --status --key-prefix acme': '2 usage',
    '--store memory: migrate': '2 usage',
  })
  const detail = `There is no store at ${placeOf(url)}. To create one: partner-api migrate`
  t.equal((await json('keys', 'list')).error.detail, detail)
  const { data } = await json('migrate', '--key-prefix', 'acme')
  t.match(data, { pending: [], current: data.latest })
  t.same((await json('migrate', '--status')).data, data)
  t.match(await run('migrate', '--key-prefix', 'other'), { code: 0, stdout: /pending: +nothing/ })

  const demo = (await json('demo', '--no-serve')).data
  t.match(demo, { key: /^other_live_/, content: { industries: 17, plans: 4, banners: 1, profiles: 64 } })
  t.match(await run('migrate', '--key-prefix', 'late'), { code: 1, stderr: /^error: .*keys/ })
  const explain = () =>
    run('explain', '--key-id', demo.id, '--partner', 'demo', 'GET', '/service/public/profiles')
  const planned = await json('keys', 'revoke', demo.id, '--dry-run')
  t.match(planned, { code: 0, data: { keys_affected: 1, requests: 0 } })
  t.match(await explain(), { code: 0, stdout: /^allowed/ }, 'a dry run changes nothing')
  await run('keys', 'revoke', demo.id, '--actor', 'Ada')
  t.match(await explain(), { code: 1, stdout: /key_revoked/ })
  t.match(await run('audit', 'list'), { code: 0, stdout: /Ada +key\.revoked/ })
  t.match(await run('audit', 'verify'), { code: 0, stdout: /entries: +\d/ })
  t.equal((await run('content', 'export', 'profiles')).stdout.trimEnd().split('\n').length, 64)
}

async function password(t: Test, server: Databases): Promise<void> {
  const url = await server.createDatabase()
  const bare = new URL(url)
  bare.password = ''
  const note = /^warning: A password is visible to other users .* PGPASSWORD, .* PARTNER_API_STORE\.\n/
  for (
    const [command, first, again] of [['migrate', 0, 0], ['partners create acme --name A', 0, 1]] as const
  ) {
    const args = command.split(' ')
    const warned = await runProgram(['--store', url, ...args], { env: { PARTNER_API_DEBUG: '1' } })
    t.match(warned.stderr, note)
    t.equal(warned.stderr.match(/PGPASSWORD/g)?.length, 1)
    // The store reads the variables of libpq from the environment of the process.
    process.env['PGPASSWORD'] = server.password
    const quiet = await Promise.all([
      runProgram([...args, '--json', '--store', url]),
      programOn(url).run(...args),
      runProgram(['--store', bare.href, ...args]),
    ])
    delete process.env['PGPASSWORD']
    for (const { stderr } of quiet) t.notMatch(stderr, /PGPASSWORD/)
    t.same([warned, ...quiet].map(({ code }) => code), [first, again, again, again])
    for (const { stdout, stderr } of [warned, ...quiet]) t.notMatch(stdout + stderr, server.password)
  }

  const copy = ['store', 'copy', '--from', 'sqlite:none.db', '--to', url]
  const copied = await Promise.all([runProgram(copy), runProgram([...copy, '--json'])])
  t.same(copied.map(({ code, stderr }) => [code, note.test(stderr)]), [[3, true], [3, false]])

  const [guessed, malformed] = ['guessed-it', 'gues/sed-it'].map((it) => url.replace(server.password, it))
  for (
    const [args, code] of [
      [['--store', guessed!, 'partners', 'list'], 3],
      [['--store', malformed!, 'partners', 'list'], 2],
      [['--store', `${url}?colour=guessed-it`, 'partners', 'list'], 2],
      [['partners', 'list', `--sotre=${malformed}`], 2],
    ] as const
  ) {
    const ended = await runProgram(args)
    t.match(ended, { code, stdout: /^$/, stderr: /^error: .+$/m })
    t.notMatch(ended.stderr, /sed-it/)
  }

  const served = startProgram(['--store', url, 'serve', '--port', '0', '--log', 'all'])
  t.teardown(() => served.kill('SIGKILL'))
  const ended = ending(served)
  await once(served.stdout, 'data')
  if (process.platform === 'linux') {
    const shown = readFileSync(`/proc/${served.pid}/cmdline`, 'utf8')
    t.match(shown, /^partner-api --store postgres:\/\/\[credentials\]@/)
    t.notMatch(shown, server.password)
  }
  served.kill('SIGTERM')
  const { code, stderr } = await ended
  t.equal(code, 0)
  t.match(stderr, note)
  t.notMatch(stderr, server.password)
}

async function unusable(t: Test, server: Databases): Promise<void> {
  const url = await server.createDatabase()
  const { run, json } = programOn(url)
  await run('migrate')
  const refused = async (code: number, error: string) => {
    for (const command of ['partners list', 'partners create acme --name A', 'serve --port 0']) {
      const ended = await json(...command.split(' '))
      t.match(ended, { code, error: { code: error, detail: placeOf(url) } }, command)
    }
  }
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql`update partner_api.store set is_incomplete = true`
  await refused(1, 'refused')
  await sql`update partner_api.store set is_incomplete = false`
  const address = new URL(url)
  address.username = 'stranger'
  const stranger = programOn(address.href)
  await server.admin.unsafe(`create role stranger login password '${server.password}'`)
  for (const command of ['partners list', 'migrate --status', 'migrate']) {
    t.match(await stranger.run(...command.split(' ')), {
      code: 3,
      stdout: '',
      stderr: /^error: The store .*permission denied for schema partner_api\.\n$/,
    })
  }
  await sql`grant usage on schema partner_api to stranger`
  await sql`grant select on all tables in schema partner_api to stranger`
  t.equal((await stranger.run('partners', 'list')).code, 0, 'an account that may only read can list partners')
  t.match(await stranger.run('serve', '--port', '0'), {
    code: 3,
    stdout: '',
    stderr: /^error: The store .*permission denied for table replica\.\n$/,
  }, 'an account that may only read cannot serve')
  await json('partners', 'create', 'acme', '--name', 'A')
  await sql`update partner_api.partner set created_at = 9007199254740993`
  t.match(await json('audit', 'verify'), {
    code: 1,
    error: { code: 'audit_broken', detail: 'an integer is beyond ±2^53' },
  })
  await sql`update partner_api.store set served_from = 99`
  await sql`insert into partner_api.migration values (99, '099-later', 0)`
  await refused(3, 'newer_schema')
}

async function down(t: Test, server: Databases): Promise<void> {
  const url = await server.createDatabase()
  await programOn(url).run('migrate')
  const deaf = createServer().listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  t.teardown(() => deaf.close())
  const { port: silentPort } = deaf.address() as { port: number }
  const stores = [{ port: String(await freePort()) }, { pathname: '/nothing' }, { port: String(silentPort) }]
  await Promise.all(stores.map(async (change) => {
    const address = new URL(url)
    Object.assign(address, change)
    const store = address.href
    for (const command of ['serve --port 0', 'keys list --json']) {
      const { code, stdout, stderr } = await programOn(store).run(...command.split(' '))
      t.equal(code, 3)
      t.match(stdout + stderr, placeOf(store))
      t.notMatch(stdout + stderr, server.password)
      t.match(stdout + stderr, /^.*\n$/, 'one line')
    }
  }))
}
