/** `--wait`: a change with a receipt of every server of the store. `core/replicas.test.ts` says when one arrives. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { test } from 'tap'
import { awaitServers } from '../../cli/command.ts'
import { type CliError, toCliError } from '../../cli/errors.ts'
import { Output } from '../../cli/output/print.ts'
import type { Replica } from '../../core/ports/replicas.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import type { Store } from '../../core/ports/store.ts'
import { programOn, temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { runSlowly } from '../support/many-keys.ts'
import { createStubStore } from '../support/stub-store.ts'

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

/** Registers a server that confirms each change at once, unless it is told otherwise. */
async function register(store: Store, name: string, more: Partial<Replica> = {}) {
  const revalidate = async () => await store.revision()
  const member = store.replicas.register({
    name,
    leaseMs: 60_000,
    revalidateEveryMs: 5,
    revalidate,
    skewMs: () => 0,
    ...more,
  })
  await member.registered()
  return member
}

const silent = { revalidate: () => new Promise<never>(() => {}) }

test('every change waits for every server', async (t) => {
  const { store, json, issue } = await createStore({ modules: ['profiles', 'pricing'] })
  const { key } = await issue()
  const members = [await register(store, 'web-1'), await register(store, 'web-2')]
  for (const command of changes(key.id)) {
    const { code, data, receipt, error } = await json(...command.split(' '), '--wait')
    t.equal(code, 0, `${command} ${error?.detail ?? ''}`)
    t.type(data, 'object')
    t.same(Object.keys(receipt).sort(), ['ms', 'replicas'])
    t.same(receipt.replicas.map(({ name, applied }) => [name, applied]).sort(), [
      ['web-1', true],
      ['web-2', true],
    ])
    for (const { ms } of receipt.replicas) t.ok(Number.isInteger(ms) && ms >= 0 && ms <= receipt.ms)
  }
  await Promise.all(members.map((member) => member.deregister()))
})

test('people read what each server did', async (t) => {
  const { store, run, issue } = await createStore({ modules: ['profiles'] })
  t.match(await run('partners', 'suspend', 'acme', '--wait'), {
    code: 0,
    stdout: /state: +suspended/,
    stderr: /^No running server has cached older data\.\nIn effect everywhere after \d+ ms\.\n$/,
  })
  const { key } = await issue()
  const members = [
    await register(store, 'web \u202e1'),
    await register(store, 'web-2', { ...silent, leaseMs: 50 }),
  ]
  const { code, stderr } = await run('keys', 'revoke', key.id, '--wait')
  t.equal(code, 0)
  const [, leaseMs, allMs] = stderr.match(
    /^Revoked permanently\.\nweb \\u\{202e\}1 applied it after \d+ ms\nweb-2 did not respond; its lease ended after (\d+) ms\nIn effect everywhere after (\d+) ms\.\n$/,
  ) ?? [stderr]
  t.equal(leaseMs, allMs)
  t.ok(Number(leaseMs) >= 50, `${leaseMs} ms`)
  await Promise.all(members.map((member) => member.deregister()))
})

test('a new key is printed before the program waits', async (t) => {
  const { store, url } = await createStore()
  const member = await register(store, 'web-1', silent)
  const issue = ['keys', 'issue', 'acme', '--name', 'k', '--quiet', '--wait']
  const { code, stdout, stderr } = await runSlowly(url, issue, async () => {
    await member.deregister()
  })
  t.match({ code, stdout, stderr }, {
    code: 0,
    stdout: /^spk_live_\w{51}\n$/,
    stderr: 'In effect everywhere',
  })
})

test('where the store is lost meanwhile, the change is printed with the error', async (t) => {
  let stdout = ''
  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      stdout += text
      done()
    },
  })
  const output = new Output({ env: {}, stdin: Readable.from([]), stdout: stream, stderr: stream }, true)
  const store = createStubStore({
    revision: () => {
      throw new StoreError('unreachable', 'The store is away.')
    },
  })
  const error = await awaitServers(store, output, { data: { id: 'made' } }, 0).catch(toCliError) as CliError
  await output.error(error)
  t.equal(error.exitCode, 3)
  const detail = 'The change is made, but whether every server has applied it is unknown: The store is away.'
  t.match(JSON.parse(stdout), { data: { id: 'made' }, error: { code: 'store_unavailable', detail } })
})
