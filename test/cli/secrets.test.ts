/** What a command that hands out a secret does when standard output cannot be written. */
import { existsSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { Readable, Writable } from 'node:stream'
import { test } from 'tap'
import { awaitServers } from '../../cli/command.ts'
import { type CliError, toCliError } from '../../cli/errors.ts'
import { Output } from '../../cli/output/print.ts'
import { lostKey } from '../../cli/output/secrets.ts'
import { run } from '../../cli/program.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import { cleanEnv, newFile, temporaryFolder } from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'
import { createStubStore } from '../support/stub-store.ts'

const webhookKey = join(temporaryFolder(), 'webhook.key')
writeFileSync(webhookKey, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })

const sink = (write: (text: string) => Error | undefined) =>
  new Writable({ decodeStrings: false, write: (text, _encoding, done) => done(write(text)) })
/** A standard output whose reader has gone. */
const goneOutput = () =>
  sink(() => Object.assign(new Error('closed'), { code: 'EPIPE' })).on('error', () => {})

/** Runs a command whose standard output fails. @param fd Its descriptor, if it is known to fail before a write. */
async function runUnwritable(command: string, store: string, fd?: number) {
  let stderr = ''
  const stdout = goneOutput()
  const code = await run(command.split(' '), '0.1.0', {
    env: cleanEnv({ PARTNER_API_STORE: store, PARTNER_API_WEBHOOK_KEY_FILE: webhookKey }),
    stdin: Readable.from([]),
    stdout: fd === undefined ? stdout : Object.assign(stdout, { fd }),
    stderr: sink((text) => {
      stderr += text
      return undefined
    }),
  })
  return { code, stderr }
}

const commands = [
  'keys issue acme --name x',
  'keys issue acme --name x --json --wait',
  'keys rotate ID --quiet',
  'keys rotate --partner acme --yes',
  'keys issue acme --name x --claim 1h --public-url https://a.example',
  'webhooks create --url https://hooks.example --event key.issued',
]

test('it changes nothing if that is known before', { skip: !existsSync('/dev/full') }, async (t) => {
  const { store, url, issue } = await createStore()
  const { key: { id } } = await issue()
  const fd = openSync('/dev/full', 'w')
  const before = await store.auditHead()
  for (const command of commands) {
    const { code, stderr } = await runUnwritable(command.replace('ID', id), url, fd)
    t.equal(code, 1, command)
    t.match(
      stderr,
      /^error: Standard output .*: no space is left\. Nothing was changed\. Use --out FILE\.\n$/,
    )
  }
  t.strictSame(await store.auditHead(), before)
  const empty = `sqlite:${newFile()}`
  const demo = await runUnwritable('demo --no-serve --json', empty, fd)
  t.match(demo, { code: 1, stderr: /Nothing was changed\. The key is printed on it\.\n$/ })
  t.equal((await runUnwritable('demo --no-serve', empty, fd)).code, 1, 'the store was empty')
})

test('otherwise, the error names it and the command that replaces it', async (t) => {
  const { store, url, issue } = await createStore()
  const { key: { id } } = await issue()
  const lost = [
    /Key (\w{12}) was issued but is lost\. To replace it: partner-api keys rotate \1 --overlap 0\n$/,
    /The link of claim (\w+) is lost\. To revoke it: partner-api claims revoke \1\n$/,
    /The secret is lost\. To make another one: partner-api webhooks rotate-secret whk_\w+\n$/,
  ]
  for (const command of commands) {
    const { code, stderr } = await runUnwritable(command.replace('ID', id), url)
    t.equal(code, 1, command)
    t.equal(lost.filter((pattern) => pattern.test(stderr)).length, 1, `${command}: ${stderr}`)
    const [, made] = /(?:Key|rotate-secret|claim) (\w{12,})/.exec(stderr) ?? []
    const rows = [...await store.listKeys({}, undefined, 99), ...await store.listClaims({}, undefined, 99)]
    const ids = [...rows, ...await store.webhooks.listWebhooks()].map((row) => row.id)
    t.ok(ids.includes(made!), `${command}: it was made`)
  }
})

test('without a secret on it, the error says that the change is made', async (t) => {
  const { url, issue } = await createStore()
  const { key: { id } } = await issue()
  const out = join(temporaryFolder(), 'new.key')
  const changes = {
    [`keys issue acme --name x --out ${out}`]: `The change is made. The only copy of the key is in ${out}.`,
    'partners suspend acme': 'The change is made.',
    'partners suspend acme --json': 'The change is made.',
    'partners resume acme --wait --json': 'The change is made.',
    'keys disable --partner acme --yes': 'Changed 1 of 2 keys of 1 partner.',
    'signups delete --email ada@example.org --yes': 'Deleted 0 signups.',
  }
  for (const [command, sentence] of Object.entries(changes)) {
    const { code, stderr } = await runUnwritable(command, url)
    t.equal(code, 1, command)
    t.match(stderr, /^error: Standard output can't be written: its reader has gone\. /)
    t.ok(stderr.endsWith(` ${sentence}\n`), stderr)
  }
  for (const command of [`keys revoke ${id} --dry-run`, 'content remove plans --dry-run none', 'keys list']) {
    t.notMatch((await runUnwritable(command, url)).stderr, 'The change is made', command)
  }
})

test('an interrupt while servers are waited for prints what was made', async (t) => {
  let stdout = ''
  const io = {
    env: {},
    stdin: Readable.from([]),
    stdout: sink((text) => {
      stdout += text
      return undefined
    }),
    stderr: sink(() => undefined),
  }
  const store = createStubStore({ revision: () => new Promise(() => {}) })
  const { kill } = process
  const killed = new Promise((resolve) => {
    process.kill = (_pid, signal) => {
      resolve(signal)
      return true
    }
  })
  t.teardown(() => process.kill = kill)
  void awaitServers(store, new Output(io, true), { data: { key: 'secret' } }, 0)
  process.emit('SIGINT', 'SIGINT')
  t.equal(await killed, 'SIGINT')
  t.match(JSON.parse(stdout), {
    data: { key: 'secret' },
    error: { code: 'interrupted', detail: /^The change is made, but .*: the wait was interrupted\.$/ },
  })
})

test('it does so when the servers cannot be waited for either', async (t) => {
  let stderr = ''
  const io = {
    env: {},
    stdin: Readable.from([]),
    stdout: goneOutput(),
    stderr: sink((text) => {
      stderr += text
      return undefined
    }),
  }
  const output = new Output(io, true)
  const store = createStubStore({
    revision: () => {
      throw new StoreError('unreachable', 'The store is away.')
    },
  })
  const lost = lostKey('abcdefghijkl')
  const error = await awaitServers(store, output, { data: { key: 'secret' }, lost }, 0).catch(toCliError)
  await output.error(error as CliError)
  t.equal((error as CliError).exitCode, 3)
  t.match(
    stderr,
    /is unknown: The store is away\. Key abcdefghijkl was issued but is lost\. To replace it: .+\n$/,
  )
  t.notMatch(stderr, 'secret')
})
