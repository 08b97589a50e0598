/** The program on a Postgres store: what operators meet, and what becomes of the password. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { freePort } from '../postgres/free-port.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import {
  documentOf,
  type Ended,
  runProcess,
  runProgram,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()

test('the program on Postgres', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  await t.test('a database without a store', (t) => emptyDatabase(t, server))
  await t.test('migrate', (t) => migrate(t, server))
  await t.test('operators', (t) => operate(t, server))
  await t.test('servers', (t) => serve(t, server))
  await t.test('a password', (t) => password(t, server))
  await t.test('stores that cannot be used', (t) => unusable(t, server))
  await t.test('a server that is down', (t) => down(t, server))
})

test('the end', (t) => {
  folder.remove()
  t.end()
})

/** Runs the program on a store that it is told of in its environment. */
function runOn(url: string): (...args: string[]) => Promise<Ended> {
  return (...args) => runProgram(args, { env: { PARTNER_API_STORE: url } })
}

function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  return host + pathname
}

function withoutPassword(address: string): string {
  const url = new URL(address)
  url.password = ''
  return url.href
}

async function emptyDatabase(t: Test, server: PostgresServer): Promise<void> {
  const url = await server.createDatabase()
  const run = runOn(url)
  const industries = join(folder.path, 'industries.jsonl')
  writeFileSync(industries, '{"slug":"travel","name":"Travel"}\n')
  const commands = [
    'partners list',
    'partners suspend acme',
    'keys list',
    'modules activate acme profiles',
    'migrate --status',
    'content export plans',
    'explain --key-id Zt81mQv04KsD --partner acme GET /service/public/plans',
  ]
  for (const ended of await Promise.all(commands.map((command) => run(...command.split(' '), '--json')))) {
    t.equal(ended.code, 3)
    t.same(documentOf(ended).error, {
      code: 'store_missing',
      detail: `There is no store at ${placeOf(url)}. To create one: partner-api migrate`,
    })
  }
  const dry = await run('content', 'import', 'industries', industries, '--dry-run', '--json')
  t.match(documentOf(dry).data, { created: 1, dry_run: true })
  writeFileSync(industries, '{"slug":"travel"}\n')
  t.match(await run('content', 'import', 'industries', industries), {
    code: 1,
    stderr: 'Nothing was imported',
  })
  t.equal((await run('migrate', '--status')).code, 3, 'neither has made a store')
  writeFileSync(industries, '{"slug":"travel","name":"Travel"}\n')
  t.match(await run('content', 'import', 'industries', industries), { code: 0, stdout: '1 created' })
}

async function migrate(t: Test, server: PostgresServer): Promise<void> {
  const run = runOn(await server.createDatabase())
  const made = documentOf(await run('migrate', '--key-prefix', 'acme', '--json')).data
  t.match(made, { pending: [] })
  t.equal(made.current, made.latest)
  t.same(documentOf(await run('migrate', '--status', '--json')).data, made)
  t.match(await run('migrate', '--key-prefix', 'other'), { code: 0, stdout: /pending: +nothing/ })
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles')
  t.match(await run('keys', 'issue', 'acme', '--name', 'k', '--quiet'), { stdout: /^other_live_/ })
  t.match(await run('migrate', '--key-prefix', 'late'), { code: 1, stderr: /^error: .*keys/ })
}

async function operate(t: Test, server: PostgresServer): Promise<void> {
  const run = runOn(await server.createDatabase())
  const demo = documentOf(await run('demo', '--no-serve', '--json')).data
  t.match(demo.content, { industries: 17, plans: 4, banners: 1, profiles: 64 })
  const again = await run('demo', '--no-serve')
  t.match(again, { code: 1, stderr: 'The store already has partners' })
  const request = ['--partner', 'demo', 'GET', '/service/public/profiles']
  t.match(await run('explain', '--key-id', demo.id, ...request), { code: 0, stdout: /^allowed/ })
  await run('keys', 'revoke', demo.id, '--actor', 'Ada')
  t.match(await run('explain', '--key-id', demo.id, ...request), { code: 1, stdout: /key_revoked/ })
  t.match(await run('audit', 'list'), { code: 0, stdout: /Ada +key\.revoked/ })
  t.match(await run('audit', 'verify'), { code: 0, stdout: /entries: +\d/ })
  const exported = await run('content', 'export', 'profiles')
  t.equal(exported.stdout.trimEnd().split('\n').length, 64)
}

async function serve(t: Test, server: PostgresServer): Promise<void> {
  const url = await server.createDatabase()
  const run = runOn(url)
  const served = await startServing(
    ['serve', '--port', '0', '--stale-if-error', '60', '--limits-per-process', '--limit', 'key=2/60'],
    url,
  )
  t.teardown(() => served.child.kill('SIGKILL'))
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'pricing')
  const key = (await run('keys', 'issue', 'acme', '--name', 'k', '--quiet')).stdout.trim()
  const verified = await runProgram([
    'verify',
    '--url',
    served.url,
    '--partner',
    'acme',
    '--module',
    'pricing',
  ], {
    env: { PARTNER_API_KEY: key },
  })
  t.match(verified, { code: 0, stdout: 'The key is valid.' })
  const read = async (): Promise<number> =>
    (await fetch(`${served.url}/service/public/plans?partner=acme`, {
      headers: { 'X-Service-Partner-Key': key },
    })).status
  t.same([await read(), await read(), await read()], [200, 200, 429])
  const { receipt } = documentOf(await run('partners', 'suspend', 'acme', '--wait', '--json'))
  t.match(receipt.replicas, [{ name: new RegExp(`^.+:${served.child.pid}$`), applied: true }])
  const ended = await stopServing(served)
  t.equal(ended.code, 0)
  t.notMatch(ended.stderr, /"level":"(?:warn|error)"/)
  const after = documentOf(await run('partners', 'resume', 'acme', '--wait', '--json')).receipt
  t.same(after.replicas, [], 'a server that has stopped is gone at once')

  const wrong = [
    ['--stale-if-error', '3601'],
    ['--stale-if-error', 'long'],
    ['--replica-name', ''],
    ['--replica-name', 'a\nb'],
    ['--replica-name', 'x'.repeat(201)],
  ]
  for (
    const { code, stdout } of await Promise.all(wrong.map((args) => run('serve', '--port', '0', ...args)))
  ) {
    t.same([code, stdout], [2, ''])
  }
}

async function password(t: Test, server: PostgresServer): Promise<void> {
  const url = await server.createDatabase()
  const note = /^warning: A password is visible to other users .* PGPASSWORD, .* PARTNER_API_STORE\.\n/
  const commands = [['migrate'], ['partners', 'create', 'acme', '--name', 'A'], [
    'audit',
    'list',
    '--partner',
    'x',
  ]]
  for (const command of commands) {
    const told = await runProgram(['--store', url, ...command], { env: { PARTNER_API_DEBUG: '1' } })
    t.match(told.stderr, note)
    t.equal(told.stderr.match(/PGPASSWORD/g)?.length, 1)
    const quiet = await Promise.all([
      runProgram([...command, '--json', '--store', url]),
      runOn(url)(...command),
      // The driver reads the variables of libpq from the environment of the process.
      runProcess(['--store', withoutPassword(url), ...command], { env: { PGPASSWORD: server.password } }),
    ])
    for (const { stderr } of quiet) t.notMatch(stderr, /PGPASSWORD/)
    t.equal(new Set([told, ...quiet].map(({ code }) => code)).size, command[0] === 'partners' ? 2 : 1)
    for (const { stdout, stderr } of [told, ...quiet]) t.notMatch(stdout + stderr, server.password)
  }

  const copy = ['store', 'copy', '--from', 'sqlite:none.db', '--to', url]
  const copied = await Promise.all([runProgram(copy), runProgram([...copy, '--json'])])
  t.same(copied.map(({ code, stderr }) => [code, note.test(stderr)]), [[3, true], [3, false]])

  const [wrong, malformed, unknown, stray] = await Promise.all([
    runProgram(['--store', url.replace(server.password, 'guessed-it'), 'partners', 'list']),
    runProgram(['--store', url.replace(server.password, 'gues/sed-it'), 'partners', 'list']),
    runProgram(['--store', `${url}?colour=guessed-it`, 'partners', 'list']),
    runProgram(['partners', 'list', `--sotre=${url.replace(server.password, 'gues/sed-it')}`]),
  ])
  t.same([wrong, malformed, unknown, stray].map(({ code }) => code), [3, 2, 2, 2])
  for (const { stdout, stderr } of [wrong, malformed, unknown, stray]) {
    t.equal(stdout, '')
    t.notMatch(stderr, /sed-it/)
    t.match(stderr, /^error: .+$/m)
  }

  const served = startProgram(['--store', url, 'serve', '--port', '0', '--log', 'all'])
  t.teardown(() => served.kill('SIGKILL'))
  let words = ''
  served.stderr.setEncoding('utf8').on('data', (text: string) => words += text)
  const [line] = await once(served.stdout.setEncoding('utf8'), 'data')
  await fetch(`${line.trim().slice('listening on '.length)}/service/public/plans`)
  if (process.platform === 'linux') {
    const shown = readFileSync(`/proc/${served.pid}/cmdline`, 'utf8')
    t.match(shown, /^partner-api --store postgres:\/\/\[credentials\]@/)
    t.notMatch(shown, server.password)
  }
  served.kill('SIGTERM')
  t.same(await once(served, 'close'), [0, null])
  t.match(words, note)
  t.notMatch(words, server.password)
}

async function unusable(t: Test, server: PostgresServer): Promise<void> {
  const url = await server.createDatabase()
  const run = runOn(url)
  await run('migrate')
  const each = async (): Promise<readonly [number | null, string, string][]> => {
    const commands = ['partners list', 'partners create acme --name A', 'serve --port 0']
    const answers = await Promise.all(commands.map((command) => run(...command.split(' '), '--json')))
    return answers.map((ended) => [ended.code, documentOf(ended).error.code, documentOf(ended).error.detail])
  }
  const { default: postgres } = await import('postgres')
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql`update partner_api.store set copied_from = 'elsewhere'`
  for (const [code, name, detail] of await each()) {
    t.same([code, name], [1, 'refused'])
    t.match(detail, placeOf(url))
  }
  await sql`update partner_api.store set copied_from = null`
  const stranger = new URL(url)
  stranger.username = 'stranger'
  await server.admin.unsafe(`create role stranger login password '${server.password}'`)
  for (const command of ['partners list', 'migrate --status', 'migrate']) {
    const ended = await runOn(stranger.href)(...command.split(' '))
    t.match(ended, {
      code: 3,
      stdout: '',
      stderr: /^error: The store .*permission denied for schema partner_api\.\n$/,
    })
  }
  await sql`grant usage on schema partner_api to stranger`
  await sql`grant select on all tables in schema partner_api to stranger`
  t.match(await runOn(stranger.href)('partners', 'list'), { code: 0 }, 'who may read, reads')
  t.match(await runOn(stranger.href)('serve', '--port', '0'), {
    code: 3,
    stdout: '',
    stderr: /^error: The store .*permission denied for table replica\.\n$/,
  }, 'and does not serve')
  await sql`update partner_api.store set served_from = 99`
  await sql`insert into partner_api.migration values (99, '099-later', 0)`
  for (const [code, name, detail] of await each()) {
    t.same([code, name], [3, 'newer_schema'])
    t.match(detail, placeOf(url))
  }
}

async function down(t: Test, server: PostgresServer): Promise<void> {
  const url = await server.createDatabase()
  const run = runOn(url)
  await run('migrate')
  const nowhere = new URL(url)
  nowhere.port = String(await freePort())
  const noDatabase = new URL(url)
  noDatabase.pathname = '/nothing'
  const deaf = createServer().listen(0, '127.0.0.1')
  await once(deaf, 'listening')
  t.teardown(() => deaf.close())
  const silent = new URL(url)
  silent.port = String((deaf.address() as { port: number }).port)
  const stores = [nowhere.href, noDatabase.href, silent.href]
  const began = performance.now()
  const ended = await Promise.all(stores.flatMap((store) => [
    runOn(store)('serve', '--port', '0'),
    runOn(store)('keys', 'list', '--json'),
  ]))
  for (const [index, { code, stdout, stderr }] of ended.entries()) {
    t.equal(code, 3)
    const sentence = stdout + stderr
    t.match(sentence, placeOf(stores[Math.floor(index / 2)]!))
    t.notMatch(sentence, server.password)
    t.equal(sentence.trimEnd().split('\n').length, 1, 'a sentence, and nothing else')
  }
  t.ok(performance.now() - began < 60_000, 'nobody waits for long')
}
