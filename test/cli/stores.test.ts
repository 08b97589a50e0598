/** Store URLs, and unusable SQLite files. */
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import {
  type Ended,
  MAIN,
  programOn,
  runProcess,
  runProgram,
  temporaryFolder,
} from '../support/cli-program.ts'

const folder = temporaryFolder()
const path = (name: string) => join(folder, name)

test('invalid store URLs are refused', async (t) => {
  t.match(await runProgram(['--store', `sqlite://${path('slashes.db')}`, 'migrate']), { code: 0 })
  t.match(await runProgram([`--store=sqlite:${path('slashes.db')}`, 'partners', 'list']), { code: 0 })
  t.match(await runProgram(['--store', 'memory:', 'partners', 'list']), {
    code: 0,
    stderr: 'ends with this command',
  })
  const wrong = [
    'sqlite:',
    `sqlite:${path('slashes.db')}?pooler=transaction`,
    'postgres:user:hush@db/x',
    'mysql://user:hush@db/x',
    'postgres://user:hush/hush@db/x',
    'sqlite:postgres://user:hush@db/x',
    'sqlite:https://user:hush@db/x',
    'user:hush@db/x',
    'localhost/x',
    'partner-api.db',
  ]
  for (const url of wrong) {
    const { code, stdout, stderr } = await runProgram(['--store', url, 'partners', 'list'])
    t.same([code, stdout], [2, ''], url)
    t.match(stderr, /^(?:warning: .*\n)?error: [^\n]*\n$/)
    t.notMatch(stderr, 'hush')
  }
})

test('a command that creates a store names it, and others create none', async (t) => {
  const creating = [
    'migrate',
    'partners create acme --name Acme',
    'content import plans -',
    'demo --no-serve',
  ]
  for (const [index, command] of creating.entries()) {
    const file = path(`created-${index}.db`)
    const { run } = programOn(`sqlite:${file}`)
    const sentence = `Created a new, empty store at ${file}.\n`
    const first = await run(...command.split(' '))
    t.equal(first.code, 0)
    t.ok(first.stderr.includes(sentence), command)
    t.notMatch((await run(...command.split(' '))).stderr, 'Created a new', `${command}, again`)
  }
  const file = path('misspelled.db')
  const reading = [
    'partners list',
    'keys list',
    'keys issue acme --name K',
    'scopes grant K read:plans',
    'content export plans',
    'content remove plans basic',
    'signups list',
    'reports',
    'problems',
    'audit verify',
    'claims list',
    'webhooks list',
    'store show',
    'store update --no-max-key-lifetime',
    'migrate --status',
  ]
  const expected = Object.fromEntries(reading.map((command) => [command, '3 store_missing']))
  const { run, refuses } = programOn(`sqlite:${file}`)
  await refuses(t, expected)
  const refused = await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profile')
  t.match(refused, { code: 2, stderr: /^error: .*\n\(Did you mean profiles\?\)\n$/ })
  t.match(await run('partners', 'create', 'Acme', '--name', 'Acme'), { code: 1, stderr: /^error: A slug / })
  t.notOk(existsSync(file))
})

test('commands in messages repeat --store', async (t) => {
  const file = `sqlite:${path("it's.db")}`
  const quoted = `partner-api --store '${file.replace("'", "'\\''")}'`
  const none = await runProgram(['partners', 'list', '--store', file])
  t.ok(none.stderr.endsWith(`To create one: ${quoted} migrate\n`), none.stderr)
  const created = await runProgram(['--store', file, 'partners', 'create', 'acme', '--name', 'Acme'])
  t.ok(created.stderr.endsWith(`Next: ${quoted} modules activate acme profiles …\n`), created.stderr)
  const { json } = programOn('memory:')
  const refused = await json('keys', 'issue', 'acme', '--name', 'n', '--scope', 'read:plans', '--store', file)
  t.ok(refused.error.detail.endsWith(`${quoted} modules activate acme pricing`))
  t.same(refused.error['remedy'], { command: 'modules activate', args: ['acme', 'pricing'] })
  const secret = await runProgram(['--store', 'postgres://u:hush@127.0.0.1:1/x', 'partners', 'list'])
  t.match(secret, { code: 3 })
  t.notMatch(secret.stderr, 'hush')
  const { run } = programOn(`sqlite:${path('slashes.db')}`)
  t.match(await run('partners', 'list'), { stderr: /: partner-api partners create/ })
})

test('the reason why a SQLite file cannot be used is reported', async (t) => {
  // Root ignores permissions, unless it gives these capabilities away. It can still enter the folder of the checkout.
  const noOverride = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all']
  const command = [...process.getuid?.() === 0 ? noOverride : [], process.execPath, MAIN]
  const run = (store: string, ...args: string[]) =>
    runProcess(['--store', `sqlite:${store}`, ...args], { command })
  const file = path('partners.db')
  t.match(await runProgram(['--store', `sqlite:${file}`, 'migrate']), { code: 0 })
  // With these files, SQLite can read without writing.
  for (const end of ['-shm', '-wal']) rmSync(file + end, { force: true })
  chmodSync(folder, 0o555)
  chmodSync(file, 0o444)
  const [written, beside] = await Promise.all([
    run(file, 'partners', 'list'),
    run(path('other.db'), 'migrate'),
  ])
  chmodSync(file, 0o000)
  const hidden = await run(file, 'serve', '--port', '0')
  chmodSync(folder, 0o755)
  const lost = path('nowhere')
  const onStore = (store: string, ...args: string[]) => runProgram(['--store', `sqlite:${store}`, ...args])
  const copy = ['store', 'copy', '--from', `sqlite:${folder}`, '--to', 'sqlite:unused']
  const answers: [Ended, string][] = [
    [written, `${file} cannot be used: this account may read but not write it`],
    [
      beside,
      `cannot be used: this account may not write in ${folder}, where SQLite creates further files`,
    ],
    [hidden, `${file} cannot be used: this account may not read it`],
    [await onStore(folder, 'partners', 'list'), `${folder} cannot be used: it is a folder`],
    [await onStore(join(lost, 'partners.db'), 'migrate'), `cannot be used: there is no folder ${lost}`],
    [await runProgram(copy), 'it is a folder'],
    [await onStore(MAIN, 'partners', 'list'), 'file is not a database'],
  ]
  for (const [{ code, stdout, stderr }, sentence] of answers) {
    t.same([code, stdout], [3, ''])
    t.match(stderr, /^error: The store .*\n$/)
    t.ok(stderr.endsWith(`${sentence}.\n`), stderr)
  }
  await programOn(`sqlite:${folder}`).refuses(t, { 'partners list': '3 store_unavailable' })
})
