import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { mintKey } from '../../core/keys/format.ts'
import {
  documentOf,
  MAIN,
  noTerminal,
  preload,
  programOn,
  runOnTerminal,
  runProcess,
  startProgram,
  temporaryFolder,
} from '../support/cli-program.ts'
import { createStore } from '../support/cli-store.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const folder = temporaryFolder()
const env = { PARTNER_API_STORE: `sqlite:${join(folder, 'store.db')}` }
const { run } = programOn(env.PARTNER_API_STORE)

test('the version is that of the package', async (t) => {
  t.match(await runProcess(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  const documents = ['--json --version', 'keys -V --json', '--help --json', 'help keys issue --json']
  const [one, two, root, issue] = await Promise.all(documents.map((args) => run(...args.split(' '))))
  for (const ended of [one!, two!]) t.same(documentOf(ended), { data: { version } })
  t.match(documentOf(root!).data.help, /^Usage: partner-api \[/)
  t.match(documentOf(issue!).data.help, /^Usage: partner-api keys issue/)
  t.match(await run('keys', '-V'), { code: 0, stdout: `${version}\n`, stderr: '' })
})

test('an unsupported Node version is refused', async (t) => {
  const onNode = (release: string) => {
    const pretend = `Object.defineProperty(process, 'versions', { value: { node: '${release}' } })`
    return runProcess(['--version'], preload(pretend))
  }
  for (const release of ['20.19.4', '22.18.0']) {
    const stderr = `needs Node 22.19 or newer, and this is Node ${release}`
    t.match(await onNode(release), { code: 2, stdout: '', stderr })
  }
  for (const release of ['22.19.0', '24.0.0']) {
    t.match(await onNode(release), { code: 0, stdout: `${version}\n` })
  }
})

test('a command loads only the modules it uses', async (t) => {
  const hook =
    'import { registerHooks } from "node:module"; import { writeSync } from "node:fs"; const urls = [];' +
    'registerHooks({ load(url, context, next) { urls.push(url); return next(url, context) } });' +
    'process.on("exit", () => writeSync(2, "loaded" + JSON.stringify(urls)))'
  const loaded = async (...args: string[]): Promise<string[]> => {
    const { stderr } = await runProcess(args, {
      ...preload(hook),
      env: { PARTNER_API_KEY: mintKey('spk', 'live').text },
    })
    const urls: string[] = JSON.parse(stderr.slice(stderr.indexOf('loaded') + 6))
    return urls.filter((url) => url.startsWith('file:'))
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
  t.notMatch(
    verify.join(' '),
    /core\/routes|adapters\/(?!client\/(?:transport|errors|response))/,
  )
  t.notMatch(migrate.join(' '), /undici|runtimes|postgres|core\/routes/)
  t.match(openapi.join(' '), /core\/openapi/)
  t.notMatch(openapi.join(' '), /undici|adapters/)
})

test('help is printed for the program, a group or a command', async (t) => {
  const root = await run('--help')
  t.match(root, { code: 0, stderr: '' })
  t.notMatch((await run('serve', '--help')).stdout, 'help [command]')
  for (const args of ['help', '--store memory: help']) t.same(await run(...args.split(' ')), root)
  const cases = {
    'help keys': 'keys [',
    '--store help help keys': 'keys [',
    'help keys issue': 'keys issue',
    '--json --actor ops help keys issue': 'keys issue',
  }
  for (const [args, name] of Object.entries(cases)) {
    t.match(await run(...args.split(' ')), { code: 0, stdout: `Usage: partner-api ${name}`, stderr: '' })
  }
  t.match(await run(), { code: 2, stdout: '', stderr: 'Usage: partner-api ' })
  t.match(await run('keys'), { code: 2, stdout: '', stderr: 'Usage: partner-api keys' })
})

test('invalid usage is refused with a suggestion', async (t) => {
  const cases: Readonly<Record<string, string | RegExp>> = {
    'keyz': 'Did you mean keys?',
    'keys isue': 'Did you mean issue?',
    'partners list --jsno': 'Did you mean --json?',
    '--store': 'argument missing',
    '--sotre=postgres://user:hush@db/x partners list': "unknown option '--sotre=…'",
    'partners list postgres://user:hush@db/x': 'too many arguments',
    "partners list --password=hu'hush": "unknown option '--password=…'",
    '--store memory: partners create acme --nmae=hush': "unknown option '--nmae=…'",
    '--store postgres://user:hush@db/x?colour=hush migrate --status': 'colour',
    'keys add': "unknown command 'add': --help lists the commands",
    'usage': ': --help lists the commands',
    'help nonsense': "unknown command 'nonsense'",
    'help kyes': '(Did you mean keys?)',
    'keys isue --help': '(Did you mean issue?)',
    'help keys isue': '(Did you mean issue?)',
    'keys help isue': '(Did you mean issue?)',
    'keys issue acme-travel --nmae x': "unknown option '--nmae'\n(Did you mean --name?)",
    'keys issue acme-travel': "required option '--name <name>' not specified",
    'keys list --stat active': '(Did you mean --state?)',
    'content import profile profiles.jsonl': /Allowed choices are profiles, .*\n\(Did you mean profiles\?\)/,
    'keys list --state activ': '(Did you mean active?)',
    'keys list --state active,revoked': '(Did you mean active revoked?)',
    'keys issue acme --name K --claim 1h': '--claim needs --public-url, the address of the deployment',
    'keys issue acme --name K --public-url https://a.example':
      '--public-url and --service-name need --claim.',
    'keys rotate K --claim 1h --public-url https://a.example --dry-run': '--claim takes no --dry-run.',
    'serve --log=al': '(Did you mean all?)',
    'partners update acme --self-service none': 'Allowed choices are rotate, revoke.\n',
    'signups list acme': 'got 1: acme.\n',
    'audit list postgres://user:hush@db/x': /got 1: postgres:\S+\.\n$/,
    'explain KEY GET /service/public/plans': /got 3: KEY, GET, \/service\/public\/plans\.\n$/,
    'serve --contact x_y': 'It must be an e-mail address',
  }
  for (const [args, message] of Object.entries(cases)) {
    const { code, stdout, stderr } = await run(...args.split(' '))
    t.same([code, stdout], [2, ''], args)
    t.match(stderr, /^(?:warning: .*\n)?error: /)
    t.match(stderr, message)
    t.notMatch(stderr, /hush|^ +at /m)
  }
  for (const args of ['keyz --json', '--json', 'keys --json', 'serve --json x', '--json keys ls']) {
    const ended = await run(...args.split(' '))
    t.match({ ...ended, ...documentOf(ended) }, { code: 2, error: { code: 'usage' } }, args)
  }
})

test('a file that is named and cannot be read is a usage error', async (t) => {
  const verify = 'verify --url http://127.0.0.1:9 --partner acme'
  const commands = [
    `${verify} --key-file none`,
    `keys import none`,
    `keys import - --secret-file none`,
    `content import plans none`,
    `serve --webhook-key-file none`,
  ]
  const store = programOn('memory:', { env: { PARTNER_API_KEY: mintKey('spk', 'live').text } })
  for (const command of [...commands, `${verify} --ca-file none`]) {
    const { code, error } = await store.json(...command.split(' '))
    const detail = "none can't be read: there is no such file."
    t.match({ code, error }, { code: 2, error: { code: 'unreadable_file', detail } }, command)
  }
})

test('mistyped partners, keys, modules and scopes have suggestions', async (t) => {
  const { issue, run } = await createStore()
  const { key: { id } } = await issue()
  const near = `${id.slice(0, -1)}${id.at(-1) === 'x' ? 'y' : 'x'}`
  const swapped = id.replace(
    /./g,
    (letter) => letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )
  const cases: Readonly<Record<string, string | RegExp>> = {
    'partners show acem': '"acem".\n(Did you mean acme?)',
    'keys list Acm3': '(Did you mean acme?)',
    [`keys show ${near}`]: `(Did you mean ${id}?)`,
    [`keys revoke ${swapped}`]: `(Did you mean ${id}?)`,
    'partners show nonsense': /"nonsense"\.\n$/,
    [`explain --key-id ${id} --partner acme GET /service/public/profile`]:
      /profile\.\n\(Did you mean \/service\/public\/profiles\?\)\n {2}POST /,
    'modules activate acme banner,signup': '(Did you mean banner signup?)',
    'keys issue acme --name K --scope profiles': '(Did you mean read:profiles?)',
    'keys issue acme --name K --scope read:plans,read:banner': '(Did you mean read:plans read:banner?)',
  }
  for (const [args, stderr] of Object.entries(cases)) {
    const code = /scope|module/.test(args) ? 2 : 1
    t.match(await run(...args.split(' ')), { code, stdout: /^$/, stderr }, args)
  }
})

test('a key in the arguments is refused and not shown', async (t) => {
  const { text } = mintKey('acme', 'live')
  for (
    const args of [
      ['keys', 'show', text],
      ['keys', 'revoke', text, '--json'],
      ['verify', '--url', 'http://127.0.0.1:9', '--partner', 'acme', `--key=${text}`],
      [text],
      ['partners', 'create', 'acme', '--name', `My ${text}`],
    ]
  ) {
    const { code, stdout, stderr } = await run(...args)
    t.equal(code, 2)
    t.notMatch(stdout + stderr, text.slice(-38))
    t.match(stdout + stderr, 'contains a key')
  }
})

test('an error without a reader has its exit code', async (t) => {
  const failed = [
    [startProgram(['keyz'], { env }), 'stderr'],
    [startProgram(['keyz', '--json'], { env }), 'stdout'],
  ] as const
  for (const [child, stream] of failed) child[stream].destroy()
  for (const [code] of await Promise.all(failed.map(([child]) => once(child, 'close')))) t.equal(code, 2)
})

test('the key prompt hides the input', { skip: noTerminal }, async (t) => {
  const command = `'${process.execPath}' '${MAIN}' verify --url http://127.0.0.1:9 --partner acme`
  const answer = (typed: string) =>
    runOnTerminal(`${command}; echo "exit $?"; stty -a`, env, 'not shown', typed)
  const { text } = mintKey('spk', 'live')
  const [given, empty, interrupted] = await Promise.all(
    [`wrong\u0015${text}x\u007f\r`, '\r', `${text.slice(0, 20)}\u0003`].map(answer),
  )
  t.match(given, /the connection was refused.*exit 3/s)
  t.notMatch(given, new RegExp(`${text.slice(-38)}|wrong`))
  t.match(given, / echo /, 'the terminal echoes again')
  t.match(empty, 'exit 2')
  t.match(interrupted, /not shown\): \r\nexit 130.* icanon .* echo /s)
})

test('progress is shown on a terminal only', { skip: noTerminal }, async (t) => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `{"slug":"i${n}","name":"Industry ${n}"}\n`).join('')
  const file = join(folder, 'industries.jsonl')
  writeFileSync(file, lines)
  const command = `'${process.execPath}' '${MAIN}' content import industries '${file}'`
  const shown = (await runOnTerminal(command, env, 'never', '')).split('\r\u001b[K')
  t.match(shown[1], /^[\d,]+ lines$/)
  t.match(shown.at(-1), /^industries: 20,000 created/)
})

test('a file with a secret that others can write is refused', async (t) => {
  const secret = join(temporaryFolder(), 'secret')
  writeFileSync(secret, 'x')
  chmodSync(secret, 0o620)
  const commands = [
    `verify --url http://127.0.0.1:9 --partner acme-travel --key-file ${secret}`,
    `serve --port 0 --webhook-key-file ${secret}`,
    `keys import - --algorithm hmac-sha256 --secret-file ${secret}`,
  ]
  for (const args of commands) {
    const { code, stderr } = await run(...args.split(' '))
    const stated =
      `error: Other accounts can write ${secret}, so it is not used. To fix it: chmod go-w ${secret}\n`
    t.same([code, stderr.replace(/^warning: .*\n/, '')], [2, stated], args)
  }
})
