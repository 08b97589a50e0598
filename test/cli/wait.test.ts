/** `--wait`: a change with a receipt of every server of a PostgreSQL store. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { until, within } from '../postgres/until.ts'
import {
  documentOf,
  ending,
  programOn,
  type Served,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const plans = join(temporaryFolder(), 'plans.jsonl')
writeFileSync(
  plans,
  JSON.stringify({
    slug: 'pro',
    name: 'Pro',
    description: 'For teams',
    price: { amount_minor: 1, currency: 'EUR' },
    interval: 'month',
    features: [],
  }),
)

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

test('on PostgreSQL', { skip: hasServer() ?? false, jobs: 4 }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  const parts = {
    servers,
    'every change': everyChange,
    'the output for people': outputOfWait,
    'a server that does not respond': silentServer,
  }
  // Most of the time is spent waiting.
  const run = ([name, part]: [string, typeof servers]) =>
    t.test(name, { buffered: true }, (t) => part(t, server))
  await Promise.all(Object.entries(parts).map(run))
  await run(['the store stops', lostStore])
})

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
