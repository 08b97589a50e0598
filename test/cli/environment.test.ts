/** Options from environment variables. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { type CliCommand, pathOf } from '../../cli/command.ts'
import { loadProgram } from '../../cli/program.ts'
import { documentOf, newFile, programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const store = `sqlite:${newFile()}`
const { run } = programOn(store)
await run('partners', 'create', 'acme-travel', '--name', 'Acme', '--module', 'profiles', 'pricing')
const { key } = documentOf(await run('keys', 'issue', 'acme-travel', '--name', 'x', '--json')).data
const [, , id = ''] = key.split('_')

/** Runs a command without spaces in its arguments, on the store unless the variables name another. */
function withVariables(args: string, variables: Readonly<Record<string, string>>) {
  return runProgram(args.split(' '), { env: { PARTNER_API_STORE: store, ...variables } })
}

const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
const all = (
  command: CliCommand,
): CliCommand[] => [command, ...(command.commands as CliCommand[]).flatMap(all)]

/** Parses arguments of a command anew. @returns The command. */
async function parse(words: readonly string[], args: string[], env: Readonly<Record<string, string>>) {
  let command = await loadProgram('0.1.0', { ...io, env })
  command.parseOptions(words.length === 0 ? args : [])
  for (const [index, word] of words.entries()) {
    command = (command.commands as CliCommand[]).find((each) => each.name() === word)!
    command.parseOptions(index === words.length - 1 ? args : [])
  }
  return command
}

test('each option has one variable, which its help names; an argument takes precedence', async (t) => {
  const logo = join(folder, 'logo.png')
  writeFileSync(logo, '')
  const forms = [
    'NUMBERd',
    'https://a.example/NUMBER',
    'key=NUMBER/60',
    'NUMBER0s',
    `NUMBER:${'0'.repeat(64)}`,
    '127.0.0.1:NUMBER',
    '192.0.2.NUMBER',
    '2027-01-0NUMBER',
  ]
  const candidates = [
    ...'1 2 4000 5000 abc abd ops@a.example me@a.example'.split(' '),
    ...forms.flatMap((form) => ['1', '2'].map((n) => form.replace('NUMBER', n))),
    logo,
  ]
  const program = await loadProgram('0.1.0', { ...io, env: {} })
  const names: string[] = []
  for (const command of all(program)) {
    const words = pathOf(command)
    const help = command.helpInformation()
    for (const option of command.options) {
      const long = option.long!
      const label = [...words, long].join(' ')
      const { name } = program.run.variables.get(option) ?? {}
      if (/^--(?:dry-run|force|replace|reuse-port|version|yes)$/.test(long)) {
        t.equal(name, undefined, label)
        continue
      }
      const regular = ['PARTNER_API', ...words, long.slice(2)].join('_').replaceAll('-', '_').toUpperCase()
      if (!/ --(?:port|host|public-url|webhook-key-file)$/.test(label)) t.equal(name, regular, label)
      t.ok(help.includes(`[${name}]`), `the help of ${label} names ${name}`)
      names.push(name!)
      const takesValue = option.required || option.optional
      const accepts = (text: string) => {
        try {
          return option.argChoices?.includes(text) ?? (option.parseArg?.(text, undefined), true)
        } catch {
          return false
        }
      }
      const valid = takesValue
        ? [...option.argChoices ?? [], ...candidates].filter(accepts)
        : ['true', 'true']
      const [a = '', b = a] = valid
      const attribute = option.attributeName()
      const read = async (args: string[]) => {
        const parsed = await parse(words, args, { [name!]: ` ${a}\r\n` })
        const value: unknown = parsed.getOptionValue(attribute)
        const text = JSON.stringify(typeof value === 'function' ? value(0) : value)
        return [text, parsed.getOptionValueSource(attribute)]
      }
      const [fromVariable, source] = await read([])
      const [fromArgument, argumentSource] = await read(takesValue ? [long, b] : [long])
      t.same([source, argumentSource], ['environment', 'cli'], label)
      if (b !== a) t.notSame(fromVariable, fromArgument, label)
    }
  }
  t.ok(names.length > 100, `${names.length} options`)
  const shared = names.filter((name, index) => names.indexOf(name) !== index)
  t.same([...new Set(shared)].sort(), ['PARTNER_API_PUBLIC_URL', 'PARTNER_API_WEBHOOK_KEY_FILE'])
})

test('white space around values is dropped, an empty value is absent', async (t) => {
  const list = 'partners list --json'
  for (const around of ['\n', '\r\n', '\r', ' ', '\t']) {
    const found = await withVariables(list, { PARTNER_API_STORE: `${around}${store}${around}` })
    t.match(documentOf(found).data, [{ slug: 'acme-travel' }], JSON.stringify(around))
  }
  const argument = await runProgram(['--store', ` ${store} `, ...list.split(' ')])
  t.match(documentOf(argument).data, [{ slug: 'acme-travel' }])

  const files = join(folder, 'files')
  mkdirSync(files)
  for (const end of ['', ' ', '\n', '\r\n']) {
    for (const given of [['--store', `sqlite:${join(files, 'new.db')}${end}`], []]) {
      const env = { PARTNER_API_STORE: `sqlite:${join(files, 'new.db')}${end}` }
      t.equal((await runProgram([...given, 'migrate'], given.length > 0 ? {} : { env })).code, 0)
    }
  }
  const to = ` sqlite:${join(files, 'copy.db')}\n`
  t.equal((await runProgram(['store', 'copy', '--from', `\n${store} `, '--to', to])).code, 0)
  t.same(readdirSync(files).filter((name) => name.endsWith('db')).sort(), ['copy.db', 'new.db'])

  const debug = await withVariables(list, { PARTNER_API_JSON: '1\r\n', PARTNER_API_PARTNERS_LIST_AFTER: ' ' })
  t.match(documentOf(debug).data, [{ slug: 'acme-travel' }])
  const empty = await withVariables('audit list', { PARTNER_API_AUDIT_LIST_LIMIT: '', PORT: '' })
  t.equal(empty.code, 0)
})

test('a variable for --json makes documents of help, the version and usage errors, too', async (t) => {
  const env = { PARTNER_API_JSON: 'true' }
  t.match(documentOf(await withVariables('--version', env)).data, { version: /^\d/ })
  t.match(documentOf(await withVariables('help partners', env)).data, { help: /^Usage: / })
  const usage = { code: 'usage' }
  t.match(documentOf(await withVariables('partners list --bogus', env)).error, usage)
  t.match(documentOf(await withVariables('bogus', env)).error, usage)
  t.match(documentOf(await withVariables('partners list', { ...env, PARTNER_API_STRE: 'x' })).error, usage)
  const limit = await withVariables('partners list', { ...env, PARTNER_API_PARTNERS_LIST_LIMIT: 'x' })
  t.match(documentOf(limit).error, usage)
})

test('a secret loses only one line end at its end', async (t) => {
  const webhookKey = Buffer.alloc(32, 1).toString('base64')
  for (const end of ['', '\n', '\r\n', '\r']) {
    const verify = await withVariables('verify --url http://127.0.0.1:9 --partner acme-travel', {
      PARTNER_API_KEY: `${key}${end}`,
    })
    t.match(verify, { code: 3, stderr: '127.0.0.1:9' }, JSON.stringify(end))
    const created = await withVariables('webhooks create --url https://hook.example --event key.issued', {
      PARTNER_API_WEBHOOK_KEY: `${webhookKey}${end}`,
    })
    t.equal(created.code, 0, created.stderr)
  }
})

test('lists are split at white space, flags are 1, true, 0 or false', async (t) => {
  const env = {
    PARTNER_API_KEYS_ISSUE_NAME: 'Two words',
    PARTNER_API_KEYS_ISSUE_SCOPE: ' read:plans\nread:profiles ',
    PARTNER_API_KEYS_ISSUE_LIMIT: 'key=10/60 signup=0',
    PARTNER_API_KEYS_ISSUE_TEST: 'true',
    PARTNER_API_KEYS_ISSUE_QUIET: '0',
  }
  t.match(documentOf(await withVariables('keys issue acme-travel --json', env)).data, {
    name: 'Two words',
    scopes: ['read:profiles', 'read:plans'],
    environment: 'test',
    limits: [{ policy: 'key', quota: 10 }, { policy: 'signup', quota: 0 }],
  })
  const urls = { PARTNER_API_OPENAPI_PUBLIC_URL: 'https://a.example https://b.example' }
  const { servers } = documentOf(await withVariables('openapi --json', urls)).data
  t.same(servers.map(({ url }: { readonly url: string }) => url), ['https://a.example', 'https://b.example'])
  const removed = { PARTNER_API_PARTNERS_UPDATE_NO_NOTE: 'false', PARTNER_API_PARTNERS_UPDATE_NAME: 'Acme' }
  await run('partners', 'update', 'acme-travel', '--note', 'kept')
  const updated = await withVariables('partners update acme-travel --json', removed)
  t.equal(documentOf(updated).data.note, 'kept')

  const invalid = {
    PARTNER_API_JSON: ['yes', 'It must be 1, true, 0 or false.'],
    PARTNER_API_SERVE_LOG: ['hush', 'Allowed choices are off, errors, all.'],
    PORT: ['http', 'It must be a whole number from 0 to 65535.'],
  }
  for (const [name, [value = '', reason]] of Object.entries(invalid)) {
    const { code, stdout, stderr } = await withVariables('serve', { [name]: value })
    t.same([code, stdout, stderr], [2, '', `error: ${name}: ${reason}\n`])
    t.equal((await withVariables('serve --help', { [name]: value })).code, 0)
  }
})

test('a variable that is no option is an error, except those of Kubernetes', async (t) => {
  const unknown = {
    PARTNER_API_STROE: '(Did you mean PARTNER_API_STORE?)',
    PARTNER_API_SERVE_TILTE: '(Did you mean PARTNER_API_SERVE_TITLE?)',
    PARTNER_API_SERVE_PORT: '(Did you mean PORT?)',
    PARTNER_API_KEYS_ISSUE_PUBLIC_URL: '(Did you mean PARTNER_API_PUBLIC_URL?)',
    PARTNER_API_KEYS_REVOKE_YES: 'must be an argument',
    PARTNER_API_SETTINGS: 'There is no option for the variable PARTNER_API_SETTINGS.',
    PARTNER_API_WEB_PORT_8787: 'There is no option for the variable PARTNER_API_WEB_PORT_8787.',
  }
  for (const [name, message] of Object.entries(unknown)) {
    const { code, stderr } = await withVariables('partners list', { [name]: '8080' })
    t.equal(code, 2, name)
    t.ok(stderr.includes(message), stderr)
  }
  const kubernetes = {
    PARTNER_API_SERVICE_HOST: '10.0.0.1',
    PARTNER_API_SERVICE_PORT: '80',
    PARTNER_API_SERVICE_PORT_HTTP_ALT: '80',
    PARTNER_API_PORT: 'tcp://10.0.0.1:8787',
    PARTNER_API_DEMO_PORT: 'tcp://10.0.0.1:8787',
    PARTNER_API_WEB_PORT_8787_TCP: 'tcp://10.0.0.1:8787',
    PARTNER_API_WEB_PORT_8787_TCP_PROTO: 'tcp',
    PARTNER_API_WEB_PORT_8787_TCP_PORT: '8787',
    PARTNER_API_WEB_PORT_53_UDP_ADDR: '10.0.0.1',
  }
  for (const command of ['partners list', 'demo --no-serve']) {
    const { code, stderr } = await withVariables(command, {
      ...kubernetes,
      PARTNER_API_STORE: command === 'demo --no-serve' ? `sqlite:${newFile()}` : store,
    })
    t.equal(code, 0, stderr)
  }
})

test('a variable that conflicts with an argument gives way', async (t) => {
  const variables = {
    'PARTNER_API_PARTNERS_SUSPEND_WAIT=1': 'partners suspend acme-travel --dry-run',
    'PARTNER_API_KEYS_UPDATE_NEVER=1': `keys update ${id} --expires 2d --dry-run`,
    'PARTNER_API_KEYS_UPDATE_EXPIRES=2d': `keys update ${id} --never --dry-run`,
    'PARTNER_API_JSON=1': 'reports --csv',
    'PARTNER_API_REPORTS_CSV=1': 'reports --json',
    'PARTNER_API_REPORTS_HTML=x.html': 'reports --csv',
    'PARTNER_API_MIGRATE_KEY_PREFIX=abc': 'migrate --status',
  }
  for (const [variable, args] of Object.entries(variables)) {
    const [name = '', value = ''] = variable.split('=')
    const { code, stderr } = await withVariables(args, { [name]: value })
    t.equal(code, 0, `${variable} ${args}: ${stderr}`)
  }
  const both = { PARTNER_API_KEYS_UPDATE_NEVER: '1', PARTNER_API_KEYS_UPDATE_EXPIRES: '2d' }
  t.match(await withVariables(`keys update ${id}`, both), { code: 2, stderr: /cannot be used with/ })
})
