/** New stores, and the program on a PostgreSQL store: errors, `--wait`, and hidden passwords. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import postgres from 'postgres'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { freePort } from '../postgres/free-port.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { until, within } from '../postgres/until.ts'
import {
  documentOf,
  ending,
  newFile,
  programOn,
  runProgram,
  type Served,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()
const write = (name: string, line: object): string => {
  writeFileSync(join(folder, name), JSON.stringify(line))
  return join(folder, name)
}
const plans = write('plans.jsonl', {
  slug: 'pro',
  name: 'Pro',
  description: 'For teams',
  price: { amount_minor: 1, currency: 'EUR' },
  interval: 'month',
  features: [],
})

/** Every command that affects running servers, in an order in which all succeed. */
const changes = (key: string): readonly string[] => [
  'partners create other --name Other --module profiles',
  'partners update other --name Others',
  'partners suspend other',
  'partners resume other',
  'modules activate other pricing',
  'modules deactivate other pricing',
  `scopes remove ${key} read:plans`,
  `scopes grant ${key} read:plans`,
  `keys limit ${key} --limit key=9/60`,
  `keys update ${key} --name Other`,
  `keys disable ${key}`,
  `keys enable ${key}`,
  `keys rotate ${key} --overlap 1h`,
  `keys revoke ${key}`,
  'keys issue other --name Plugin',
  'partners remove other --yes',
  `content import plans ${plans}`,
  'content remove plans pro',
]

test('a store in memory refuses --wait before any change', async (t) => {
  const { json, refuses } = programOn('memory:')
  for (const command of changes('Zt81mQv04KsD')) {
    const detail = /^A memory: store has no other servers/
    t.match(
      await json(...command.split(' '), '--wait'),
      { code: 2, error: { code: 'usage', detail } },
      command,
    )
  }
  await refuses(t, { [`content import plans ${plans} --dry-run --wait`]: '2 usage' })
})

test('a new SQLite store', (t) => newStore(t, `sqlite:${newFile()}`))

test('the program on Postgres', { skip: hasServer() ?? false, jobs: 4 }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const parts = {
    'a new store': async (t: Test) => newStore(t, await server.createDatabase()),
    servers,
    'a password': password,
    'stores that cannot be used': unusable,
    'a server that is down': down,
    '--wait': everyChange,
    'the output of --wait for people': outputOfWait,
    'a server that does not respond': silentServer,
  }
  // Most of the time is spent waiting.
  const run = ([name, part]: [string, typeof servers]) =>
    t.test(name, { buffered: true }, (t) => part(t, server))
  await Promise.all(Object.entries(parts).map(run))
  await run(['the store stops during --wait', lostStore])
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

async function servers(t: Test, server: PostgresServer): Promise<void> {
  const { url, json, read } = await prepare(t, server)
  const served = await startServing(
    ['serve', '--port', '0', '--stale-if-error', '60', '--limits-per-process', '--limit', 'key=2/60'],
    url,
  )
  t.teardown(() => served.child.kill('SIGKILL'))
  t.same([await read(served), await read(served), await read(served)], [200, 200, 429])
  const { receipt } = await json('partners', 'suspend', 'acme', '--wait')
  t.match(receipt.replicas, [{ name: new RegExp(`^.+:${served.child.pid}$`), applied: true }])
  const ended = await stopServing(served)
  t.equal(ended.code, 0)
  t.notMatch(ended.stderr, /"level":"(?:warn|error)"/)
  const after = await json('partners', 'resume', 'acme', '--wait')
  t.same(after.receipt.replicas, [], 'a stopped server is deregistered')
}

async function password(t: Test, server: PostgresServer): Promise<void> {
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

async function unusable(t: Test, server: PostgresServer): Promise<void> {
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

async function down(t: Test, server: PostgresServer): Promise<void> {
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

/** A database with a partner and a key, the commands on it, and servers that have read from it. */
async function prepare(t: Test, server: PostgresServer) {
  const url = await server.createDatabase()
  const { run, json } = programOn(url)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles', 'pricing')
  const issued = await json('keys', 'issue', 'acme', '--name', 'k')
  t.equal(issued.code, 0, JSON.stringify(issued.error))
  const { data } = issued
  const read = async ({ url }: Served): Promise<number> => {
    const headers = { 'X-Service-Partner-Key': data.key }
    return (await fetch(`${url}/service/public/plans?partner=acme`, { headers })).status
  }
  const serve = async (name: string, ...args: string[]): Promise<Served> => {
    const served = await startServing(['serve', '--port', '0', '--replica-name', name, ...args], url)
    t.teardown(() => served.child.kill('SIGKILL'))
    await until(async () => await read(served) === 200, 'a server in force')
    return served
  }
  return { url, run, json, read, serve, id: data.id as string }
}

async function everyChange(t: Test, server: PostgresServer): Promise<void> {
  const { json, read, serve, id } = await prepare(t, server)
  const slow = ['--max-staleness', '10000']
  const [one, other] = await Promise.all([serve('web-1', ...slow), serve('web-2', ...slow)])
  for (const command of changes(id)) {
    const { code, data, receipt, error } = await json(...command.split(' '), '--wait')
    t.equal(code, 0, `${command} ${error?.detail ?? ''}`)
    t.type(data, 'object')
    t.same(Object.keys(receipt).sort(), ['ms', 'replicas'])
    t.same(receipt.replicas.map(({ name, applied }) => [name, applied]).sort(), [
      ['web-1', true],
      ['web-2', true],
    ])
    for (const { ms } of receipt.replicas) t.ok(Number.isInteger(ms) && ms >= 0 && ms <= receipt.ms)
    if (/^keys revoke/.test(command)) {
      t.same([await read(one), await read(other)], [401, 401])
    }
  }
}

async function outputOfWait(t: Test, server: PostgresServer): Promise<void> {
  const { run, serve } = await prepare(t, server)
  const alone = await run('partners', 'suspend', 'acme', '--wait')
  t.match(alone, {
    code: 0,
    stdout: /state: +suspended/,
    stderr: /^No running server has cached older data\.\nIn effect everywhere after \d+ ms\.\n$/,
  })
  await run('partners', 'resume', 'acme')
  const { child } = await serve('web \u202e1')
  const applied = /^web \\u\{202e\}1 applied it after \d+ ms\nIn effect everywhere after \d+ ms\.\n$/
  const quiet = await run('keys', 'issue', 'acme', '--name', 'k', '--quiet', '--wait')
  t.match(quiet, { code: 0, stdout: /^spk_live_\w{51}\n$/, stderr: applied })
  const [id = ''] = /(?<=^spk_live_)\w{12}/.exec(quiet.stdout) ?? []
  const revoked = await run('keys', 'revoke', id, '--wait')
  t.match(revoked, {
    code: 0,
    stdout: /state: +revoked/,
    stderr: /^Revoked permanently\.\nweb .* applied it/,
  })
  t.notMatch(revoked.stderr, 'max staleness')
  child.kill('SIGKILL')
}

async function silentServer(t: Test, server: PostgresServer): Promise<void> {
  const { run, read, serve, id } = await prepare(t, server)
  const [answering, frozen] = await Promise.all([serve('web-1'), serve('web-2', '--max-staleness', '1500')])
  frozen.child.kill('SIGSTOP')
  const { code, stderr } = await run('keys', 'revoke', id, '--wait')
  t.equal(code, 0)
  const [, leaseMs, allMs] = stderr.match(
    /^Revoked permanently\.\nweb-1 applied it after \d+ ms\nweb-2 did not respond; its lease ended after (\d+) ms\nIn effect everywhere after (\d+) ms\.\n$/,
  ) ?? [stderr]
  t.equal(leaseMs, allMs)
  t.ok(Number(leaseMs) >= 1_500 && Number(leaseMs) < 60_000, `${leaseMs} ms`)
  frozen.child.kill('SIGCONT')
  t.same([await read(answering), await read(frozen)], [401, 401])
}

async function lostStore(t: Test, server: PostgresServer): Promise<void> {
  const { url, run, serve } = await prepare(t, server)
  const frozen = await serve('web-1', '--max-staleness', '10000')
  frozen.child.kill('SIGSTOP')
  const start = (...more: string[]) => {
    const args = ['keys', 'issue', 'acme', '--name', 'k', '--wait', ...more]
    const child = startProgram(args, { env: { PARTNER_API_STORE: url } })
    const issued = once(more.includes('--json') ? child.stderr : child.stdout, 'data')
    return { issued, ended: ending(child) }
  }
  const started = [start('--quiet'), start('--json')]
  for (const { issued } of started) await issued
  await server.kill()
  const [human, json] = await within(
    Promise.all(started.map(({ ended }) => ended)),
    'the commands to give up',
  )
  t.match(human, { code: 3, stdout: /^spk_live_\w{51}\n$/, stderr: /^error: The change is made, but / })
  const { data, error } = documentOf(json!)
  t.equal(json!.code, 3)
  t.match(error, { code: 'store_unavailable', detail: /^The change is made, but / })
  t.match(data.key, /^spk_live_/, 'the key is printed')
  await server.restart()
  t.equal((await run('keys', 'show', data.id)).code, 0, 'the key was issued')
}
