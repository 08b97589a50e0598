/** `--wait`: a change that has returned binds every server, and what kept it is named. */
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { within } from '../postgres/until.ts'
import {
  documentOf,
  type Ended,
  ending,
  runProgram,
  type Served,
  startProgram,
  startServing,
  stopServing,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()
const plans = join(folder.path, 'plans.jsonl')
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

/** Every command that changes what servers serve, in an order in which all of them succeed. */
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

test('a store that knows no servers refuses it before anything is changed', async (t) => {
  const file = join(folder.path, 'store.db')
  for (const store of [`sqlite:${file}`, 'memory:']) {
    const refused = await Promise.all(
      changes('Zt81mQv04KsD').map((command) =>
        runProgram([...command.split(' '), '--wait', '--json'], { env: { PARTNER_API_STORE: store } })
      ),
    )
    for (const ended of refused) {
      t.equal(ended.code, 2)
      t.match(documentOf(ended).error, { code: 'usage', detail: /postgres.* max staleness: 1 s .*10 s/ })
    }
  }
  t.notOk(existsSync(file))
  const dry = await runProgram(['content', 'import', 'plans', plans, '--dry-run', '--wait'])
  t.match(dry, { code: 2, stderr: /--dry-run.* cannot be used with .*--wait/ })
})

test('servers of a Postgres store', { skip: hasServer() ?? false }, async (t) => {
  const server = await startServer()
  t.teardown(() => server.close())
  await t.test('every change', (t) => everyChange(t, server))
  await t.test('words for people', (t) => words(t, server))
  await t.test('a server that does not answer', (t) => silentServer(t, server))
  await t.test('the store goes away meanwhile', (t) => lostStore(t, server))
})

test('the end', (t) => {
  folder.remove()
  t.end()
})

/** A database with a partner and a key, the commands on it, and servers that have read from it. */
async function prepare(t: Test, server: PostgresServer) {
  const url = await server.createDatabase()
  const run = (...args: string[]): Promise<Ended> => runProgram(args, { env: { PARTNER_API_STORE: url } })
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles', 'pricing')
  const { data } = documentOf(await run('keys', 'issue', 'acme', '--name', 'k', '--json'))
  const read = async ({ url }: Served): Promise<number> => {
    const headers = { 'X-Service-Partner-Key': data.key }
    return (await fetch(`${url}/service/public/plans?partner=acme`, { headers })).status
  }
  const serve = async (name: string, ...args: string[]): Promise<Served> => {
    const served = await startServing(['serve', '--port', '0', '--replica-name', name, ...args], url)
    t.teardown(() => served.child.kill('SIGKILL'))
    t.equal(await read(served), 200)
    return served
  }
  return { url, run, read, serve, id: data.id as string }
}

async function everyChange(t: Test, server: PostgresServer): Promise<void> {
  const { run, read, serve, id } = await prepare(t, server)
  const slow = ['--max-staleness', '10000']
  const [one, other] = await Promise.all([serve('web-1', ...slow), serve('web-2', ...slow)])
  for (const command of changes(id)) {
    const ended = await run(...command.split(' '), '--wait', '--json')
    t.equal(ended.code, 0, command)
    const { data, receipt } = documentOf(ended)
    t.type(data, 'object')
    t.same(Object.keys(receipt).sort(), ['ms', 'replicas'])
    t.same(receipt.replicas.map(({ name, applied }) => [name, applied]).sort(), [
      ['web-1', true],
      ['web-2', true],
    ])
    for (const { ms } of receipt.replicas) t.ok(Number.isInteger(ms) && ms >= 0 && ms <= receipt.ms)
    if (command.startsWith('keys revoke')) t.same([await read(one), await read(other)], [401, 401])
  }
  await stopServing(one)
  const { receipt } = documentOf(await run('partners', 'suspend', 'acme', '--wait', '--json'))
  t.same(receipt.replicas.map(({ name }) => name), ['web-2'], 'who has stopped is not waited for')
}

async function words(t: Test, server: PostgresServer): Promise<void> {
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
  const frozen = await serve('web-1', '--max-staleness', '3000')
  frozen.child.kill('SIGSTOP')
  /** Stops the store once the command waits for the server that does not answer. */
  const lose = async (...args: string[]): Promise<Ended> => {
    const child = startProgram([...args, '--wait'], { env: { PARTNER_API_STORE: url } })
    const ended = ending(child)
    await once(args.includes('--json') ? child.stderr : child.stdout, 'data')
    await server.kill()
    return await within(ended, 'the command to give up')
  }
  const human = await lose('keys', 'issue', 'acme', '--name', 'k', '--quiet')
  t.match(human, { code: 3, stdout: /^spk_live_\w{51}\n$/, stderr: /^error: The change is made, but / })
  await server.restart()
  const json = await lose('keys', 'issue', 'acme', '--name', 'k', '--json')
  const { data, error } = documentOf(json)
  t.equal(json.code, 3)
  t.match(error, { code: 'store_unavailable', detail: /^The change is made, but / })
  t.match(data.key, /^spk_live_/, 'the key is not lost')
  await server.restart()
  t.equal((await run('keys', 'show', data.id)).code, 0, 'the change was made')
}
