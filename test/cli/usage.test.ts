import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { mintKey } from '../../core/keys/format.ts'
import {
  cleanEnv,
  documentOf,
  ending,
  MAIN,
  runProcess,
  runProgram,
  startProgram,
  temporaryFolder,
} from '../support/cli-program.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const folder = temporaryFolder()
const env = { PARTNER_API_STORE: `sqlite:${join(folder.path, 'store.db')}` }
const run = (...args: string[]) => runProgram(args, { env })

const groups: Readonly<Record<string, readonly string[]>> = {
  serve: [],
  demo: [],
  migrate: [],
  store: ['copy'],
  partners: ['create', 'list', 'show', 'update', 'suspend', 'resume', 'remove'],
  modules: ['list', 'activate', 'deactivate'],
  keys: ['issue', 'list', 'show', 'rotate', 'update', 'limit', 'disable', 'enable', 'revoke'],
  scopes: ['list', 'show', 'grant', 'remove'],
  content: ['import', 'export', 'remove'],
  signups: ['list', 'export'],
  explain: [],
  audit: ['list', 'verify'],
  verify: [],
  openapi: [],
}

test('the version is the one of the package', async (t) => {
  for (const args of [['--version'], ['-V'], ['--json', '--version'], ['keys', '--version']]) {
    t.match(await run(...args), { code: 0, stdout: `${version}\n`, stderr: '' })
  }
})

test('an old Node gets a sentence', async (t) => {
  for (
    const [release, isOld] of [['20.19.4', true], ['22.18.0', true], ['22.19.0', false], ['24.0.0', false]]
  ) {
    const pretend = `Object.defineProperty(process, 'versions', { value: { node: '${release}' } })`
    const ended = await runProcess(['--version'], {
      nodeArguments: ['--import', `data:text/javascript,${pretend}`],
    })
    if (isOld) {
      t.match(ended, {
        code: 2,
        stdout: '',
        stderr: `needs Node 22.19 or newer, and this is Node ${release}`,
      })
    } else t.match(ended, { code: 0, stdout: `${version}\n` })
  }
})

test('a command loads only what it uses', async (t) => {
  const hook =
    'import { registerHooks } from "node:module"; import { writeSync } from "node:fs"; const urls = [];' +
    'registerHooks({ load(url, context, next) { urls.push(url); return next(url, context) } });' +
    'process.on("exit", () => writeSync(2, "loaded" + JSON.stringify(urls)))'
  const loaded = async (...args: string[]): Promise<string[]> => {
    const nodeArguments = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
    const { stderr } = await runProcess(args, {
      nodeArguments,
      env: { PARTNER_API_KEY: mintKey('spk', 'live').text },
    })
    return JSON.parse(stderr.slice(stderr.indexOf('loaded') + 6)).filter((url: string) =>
      url.startsWith('file:')
    )
  }
  const [version, list, verify, migrate, openapi] = await Promise.all([
    loaded('--version'),
    loaded('modules', 'list'),
    loaded('verify', '--url', 'http://127.0.0.1:9', '--partner', 'acme'),
    loaded('--store', env.PARTNER_API_STORE, 'migrate'),
    loaded('openapi'),
  ])
  t.match(version, [/cli\/main\.ts$/])
  t.equal(version.length, 1)
  t.notMatch(list.join(' '), /undici|valibot|adapters/)
  t.match(verify.join(' '), /undici/)
  t.notMatch(verify.join(' '), /core\/routes|adapters\/(?!stores\/store-error|client\/(?:transport|errors))/)
  t.notMatch(migrate.join(' '), /undici|valibot|runtimes|memory|postgres|core\/routes/)
  t.match(openapi.join(' '), /core\/openapi/)
  t.notMatch(openapi.join(' '), /undici|adapters/)
})

test('help', async (t) => {
  const [root, asCommand, bare] = await Promise.all([run('--help'), run('help'), run()])
  t.match(root, { code: 0, stderr: '' })
  t.equal(asCommand.stdout, root.stdout)
  t.same([bare.code, bare.stdout], [2, ''])
  const commands = Object.entries(groups).flatMap(([group, names]) => names.map((name) => [group, name]))
  const single = Object.keys(groups).filter((group) => groups[group]!.length === 0).map((group) => [group])
  for (const batch of [Object.keys(groups).map((group) => [group]), commands, single]) {
    const answers = await Promise.all(batch.map((command) => run(...command, '--help')))
    for (const [index, ended] of answers.entries()) {
      const command = batch[index]!
      t.equal(ended.code, 0)
      t.match(ended.stdout, `Usage: partner-api ${command.join(' ')}`)
      if (batch === commands || batch === single) {
        t.match(ended.stdout, new RegExp(`Examples?:\n(.*\n)*?.*partner-api.* ${command.join(' ')}`))
      }
    }
  }
  for (const group of Object.keys(groups)) t.match(root.stdout, new RegExp(`^  ${group} +[A-Z]`, 'm'))
  for (const line of [...root.stdout.split('\n')]) t.ok(line.length <= 110)
  t.match(await run('help', 'keys', 'issue'), { code: 0, stdout: 'Usage: partner-api keys issue' })
  const behind = await Promise.all([
    run('--store', 'help', 'help', 'keys'),
    run('--json', '--actor', 'ops', 'help', 'keys', 'issue'),
    run('--store', 'memory:', 'help'),
  ])
  t.same(behind.map(({ code, stderr }) => [code, stderr]), [[0, ''], [0, ''], [0, '']])
  t.match(behind[0], { stdout: 'Usage: partner-api keys [options]' })
  t.match(behind[1], { stdout: 'Usage: partner-api keys issue' })
  t.match(behind[2], { stdout: root.stdout })
  t.match(await run('keys'), { code: 2, stdout: '', stderr: 'Usage: partner-api keys' })
})

test('wrong usage', async (t) => {
  const wrong = await Promise.all([
    run('keyz'),
    run('keys', 'isue'),
    run('partners', 'list', '--jsno'),
    run('--store'),
    run('--store', 'postgres:user:hush@db/x', 'partners', 'list'),
    run('--store', 'mysql://user:hush@db/x', 'partners', 'list'),
    run('--store', 'postgres://user:hush/hush@db/x', 'partners', 'list'),
    run('--store', 'postgres://user:hush@db/x?colour=hush', 'migrate', '--status'),
    run('--sotre=postgres://user:hush@db/x', 'partners', 'list'),
    run('--store', 'sqlite:', 'partners', 'list'),
    run('partners', 'list', 'postgres://user:hush@db/x'),
    run('partners', 'list', "--password=hu'hush"),
    run('--store', 'memory:', 'partners', 'create', 'acme', '--nmae=hush'),
  ])
  for (const ended of wrong) {
    t.same([ended.code, ended.stdout], [2, ''])
    t.match(ended.stderr, /^(?:warning: .*\n)?error: /)
    t.notMatch(ended.stderr, 'hush')
    t.notMatch(ended.stderr, /^ +at /m)
  }
  t.match(wrong[0]!.stderr, 'Did you mean keys?')
  t.match(wrong[1]!.stderr, 'Did you mean issue?')
  t.match(wrong[2]!.stderr, 'Did you mean --json?')
  t.match(wrong.at(-1)!.stderr, "option '--name <name>' not specified, and there is no option '--nmae'")
  t.match(wrong[4]!.stderr, 'A store URL is sqlite:FILE, postgres://HOST/NAME or memory:.')
  for (
    const [words, meant] of [
      ['keys create acme --name n', 'issue'],
      ['keys add', 'issue'],
      ['keys delete Zt81mQv04KsD', 'revoke'],
      ['keys rm', 'revoke'],
      ['--json keys ls', 'list'],
      ['keys usage', 'show or --help'],
      ['partners add', 'create'],
      ['partners rm acme', 'remove'],
      ['partners edit', 'update'],
      ['modules add acme pricing', 'activate'],
      ['modules delete', 'deactivate'],
      ['scopes add', 'grant'],
      ['content rm', 'remove'],
      ['usage', '--help'],
    ] as const
  ) {
    const { code, stdout, stderr } = await run(...words.split(' '))
    t.equal(code, 2)
    t.ok((stdout + stderr).includes(`(Did you mean ${meant}?)`), `${words}: ${stdout}${stderr}`)
  }
  const json = await Promise.all([
    run('keyz', '--json'),
    run('--json'),
    run('keys', '--json'),
    run('serve', '--json', 'x'),
  ])
  for (const ended of json) {
    t.equal(ended.code, 2)
    t.equal(documentOf(ended).error.code, 'usage')
  }
})

test('a key in the arguments is refused and not shown', async (t) => {
  const { text } = mintKey('acme', 'live')
  const all = await Promise.all([
    run('keys', 'show', text),
    run('keys', 'revoke', text, '--json'),
    run('verify', '--url', 'http://127.0.0.1:9', '--partner', 'acme', `--key=${text}`),
    run(text),
    run('partners', 'create', 'acme', '--name', `My ${text}`),
  ])
  for (const ended of all) {
    t.equal(ended.code, 2)
    t.notMatch(ended.stdout + ended.stderr, text.slice(-38))
    t.match(ended.stdout + ended.stderr, 'contains a key')
  }
})

test('a store that cannot be used', async (t) => {
  const { code, error } = await run('--json', '--store', `sqlite:${folder.path}`, 'partners', 'list')
    .then((ended) => ({ ...ended, ...documentOf(ended) }))
  t.equal(code, 3)
  t.equal(error.code, 'store_unavailable')
  const notSqlite = await run('--store', `sqlite:${MAIN}`, 'partners', 'list')
  t.equal(notSqlite.code, 3)
  t.match(notSqlite.stderr, /^error: .*\n$/)
  t.match(await run('--store', `sqlite:${join(folder.path, 'no', 'such', 'folder')}`, 'migrate'), { code: 3 })
  const url = `sqlite://${join(folder.path, 'slashes.db')}`
  t.match(await run('--store', url, 'migrate'), { code: 0 })
  t.match(await run(`--store=sqlite:${join(folder.path, 'slashes.db')}`, 'partners', 'list'), { code: 0 })
  t.match(await run('--store', 'memory:', 'partners', 'list'), { code: 0, stderr: 'ends with this command' })
})

test('commands that messages name repeat --store', async (t) => {
  const file = `sqlite:${join(folder.path, "it's.db")}`
  const quoted = `partner-api --store '${file.replace("'", "'\\''")}'`
  const none = await run('partners', 'list', '--store', file)
  t.ok(none.stderr.endsWith(`To create one: ${quoted} migrate\n`), none.stderr)
  const created = await run('--store', file, 'partners', 'create', 'acme', '--name', 'Acme')
  t.ok(created.stderr.endsWith(`Next: ${quoted} modules activate acme profiles …\n`), created.stderr)
  const refused = await run(
    'keys',
    'issue',
    'acme',
    '--name',
    'n',
    '--scope',
    'read:plans',
    '--store',
    file,
    '--json',
  )
  t.ok(documentOf(refused).error.detail.endsWith(`${quoted} modules activate acme pricing`))
  const secret = await run('--store', 'postgres://u:hush@127.0.0.1:1/x', 'partners', 'list')
  t.notMatch(secret.stderr, 'hush')
  await run('migrate')
  t.match(await run('partners', 'list'), { stderr: /: partner-api partners create/ })
})

test('a reader that leaves is no error', async (t) => {
  const child = startProgram(['--help'], { env })
  child.stdout.destroy()
  const [code] = await once(child, 'close')
  t.equal(code, 0)
})

test('the hidden prompt', {
  skip: spawnSync('script', ['--version']).status === 0
    ? false
    : 'there is no script(1) to make a terminal with',
}, async (t) => {
  const terminal = (args: readonly string[]) => {
    const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(' ')
    return spawn('script', ['-qec', `${command}; echo "exit $?"; stty -a`, '/dev/null'], {
      env: cleanEnv({ ...env, TERM: 'xterm', SHELL: '/bin/sh' }),
      stdio: 'pipe',
    })
  }
  const answer = async (typed: string) => {
    const child = terminal(['verify', '--url', 'http://127.0.0.1:9', '--partner', 'acme'])
    const ended = ending(child)
    child.stdout.on('data', (text: string) => {
      if (text.includes('not shown')) child.stdin.write(typed)
    })
    const { stdout } = await ended
    return stdout
  }
  const { text } = mintKey('spk', 'live')
  const given = await answer(`wrong\u0015${text}x\u007f\r`)
  t.match(given, 'the connection was refused')
  t.match(given, 'exit 3')
  t.notMatch(given, text.slice(-38))
  t.notMatch(given, 'wrong')
  t.match(given, / echo /, 'the terminal echoes again')

  t.match(await answer('\r'), 'exit 2')
  const interrupted = await answer(`${text.slice(0, 20)}\u0003`)
  t.match(interrupted, 'exit 130')
  t.match(interrupted, / echo /)
  t.match(interrupted, / icanon /)
})

test('progress is shown on a terminal only', {
  skip: spawnSync('script', ['--version']).status === 0
    ? false
    : 'there is no script(1) to make a terminal with',
}, async (t) => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `{"slug":"i${n}","name":"Industry ${n}"}\n`).join('')
  const file = join(folder.path, 'industries.jsonl')
  writeFileSync(file, lines)
  const command = `'${process.execPath}' '${MAIN}' content import industries '${file}'`
  const child = spawn('script', ['-qec', command, '/dev/null'], { env: cleanEnv(env), stdio: 'pipe' })
  child.stdin.end()
  const { stdout } = await ending(child)
  const shown = stdout.split('\r\u001b[K')
  t.match(shown[1], /^[\d,]+ lines$/)
  t.match(shown.at(-1), /^industries: 20,000 created/)
})

test('the end', (t) => {
  folder.remove()
  t.end()
})
