/** Options from the environment and the configuration file. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import type { CliCommand } from '../../cli/command.ts'
import { pathOf } from '../../cli/config.ts'
import { loadProgram } from '../../cli/program.ts'
import { documentOf, newFile, programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder, 'partner-api', 'config.json')
mkdirSync(join(folder, 'partner-api'))
const store = `sqlite:${newFile()}`
const { run } = programOn(store)
await run('partners', 'create', 'acme-travel', '--name', 'Acme', '--module', 'profiles', 'pricing')
const { key } = documentOf(await run('keys', 'issue', 'acme-travel', '--name', 'x', '--json')).data
const [, , id = ''] = key.split('_')

function configured(values: unknown, args: string, env: Readonly<Record<string, string>> = {}) {
  writeFileSync(file, typeof values === 'string' ? values : JSON.stringify(values))
  return runProgram(args.split(' '), { env: { XDG_CONFIG_HOME: folder, ...env } })
}

/** What `config show --json` says about one option. */
async function shown(option: string, ...given: Parameters<typeof configured>) {
  const { data } = documentOf(await configured(...given))
  return data.find((each: { readonly option: string }) => each.option === option)
}

test('arguments precede variables, variables the file, and the file defaults', async (t) => {
  const values = { store, serve: { port: 1, limit: ['key=1/60', 'authfail=0'], 'allow-browsers': true } }
  t.match(await configured(values, 'partners list'), { code: 0, stdout: /acme-travel/ })
  const source = `file ${file}`
  const show = 'config show serve --json'
  t.same(await shown('port', values, show), { option: 'port', value: '1', source })
  t.same(await shown('limit', values, show), { option: 'limit', value: 'key=1/60 authfail=0', source })
  t.same(await shown('allow-browsers', values, show), { option: 'allow-browsers', value: 'true', source })
  t.same(await shown('log', values, show), { option: 'log', value: 'errors', source: 'default' })
  t.same(await shown('port', values, show, { PORT: '8' }), {
    option: 'port',
    value: '8',
    source: 'environment PORT',
  })
  const actor = (args: string, env = {}) =>
    shown('actor', { actor: 'file' }, `${args}config show --json`, env)
  t.match(await actor(''), { value: 'file', source })
  t.match(await actor('', { PARTNER_API_ACTOR: 'env' }), { value: 'env' })
  t.match(await actor('--actor me ', { PARTNER_API_ACTOR: 'env' }), { value: 'me', source: 'argument' })
  const audit = await configured({ store, audit: { list: { limit: 1 } } }, 'audit list')
  t.match(audit.stderr, 'There are older entries')
  const more = await configured({ store, audit: { list: { limit: 1 } } }, 'audit list --limit 50')
  t.notMatch(more.stderr, 'There are older entries')
  const grant = { store, keys: { issue: { name: 'configured', scope: ['read:plans'] } } }
  const issued = await configured(grant, 'keys issue acme-travel --scope read:profiles --json')
  t.match(documentOf(issued).data, { name: 'configured', scopes: ['read:profiles'] })
})

test('an option of each command is an argument, a variable or in the file, in this order', async (t) => {
  const logo = join(folder, 'logo.png')
  writeFileSync(logo, '')
  const numbers = '1 2 3 4000 5000 6000 abc abd abe ops@a.example me@a.example i@a.example'.split(' ')
  const forms = [
    ...['NUMBERd', 'https://a.example/NUMBER', 'key=NUMBER/60', 'NUMBER0s', `NUMBER:${'0'.repeat(64)}`],
    ...['127.0.0.1:NUMBER', '192.0.2.NUMBER', '2027-01-0NUMBER'],
  ]
  const candidates = [
    ...numbers,
    ...forms.flatMap((form) => ['1', '2', '3'].map((n) => form.replace('NUMBER', n))),
    logo,
  ]
  const io = { ...process, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  const path = join(folder, 'every.json')

  /** The value and source of an option, parsed anew. */
  async function parsed(
    words: readonly string[],
    long: string,
    given: { file: unknown; env?: string; args: string[] },
  ) {
    const name = long.slice(2)
    const section = words.reduceRight<unknown>((inner, word) => ({ [word]: inner }), { [name]: given.file })
    // In the file, `store` is the option.
    writeFileSync(path, JSON.stringify(words[0] === 'store' ? {} : section))
    const variable = ['PARTNER_API', ...words, name].join('_').replaceAll('-', '_').toUpperCase()
    const env = { PARTNER_API_CONFIG: path, ...(given.env !== undefined && { [variable]: given.env }) }
    let command = await loadProgram('0.1.0', { ...io, env })
    command.parseOptions(words.length === 0 ? given.args : [])
    for (const [index, word] of words.entries()) {
      command = (command.commands as CliCommand[]).find((each) => each.name() === word)!
      command.parseOptions(index === words.length - 1 ? given.args : [])
    }
    const attribute = command.options.find((each) => each.long === long)!.attributeName()
    const value: unknown = command.getOptionValue(attribute)
    return [
      JSON.stringify(typeof value === 'function' ? value(0) : value),
      command.getOptionValueSource(attribute),
    ]
  }

  const all = (
    command: CliCommand,
  ): CliCommand[] => [command, ...(command.commands as CliCommand[]).flatMap(all)]
  let count = 0
  for (const command of all(await loadProgram('0.1.0', { ...io, env: {} }))) {
    for (const option of command.options) {
      const long = option.long!
      if (/^--(?:config|dry-run|force|revoke|version|yes)$/.test(long)) continue
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
        : ['true', 'false']
      const [a, b = a, c = b] = valid as [string, string?, string?]
      const toFile = (text: string) => takesValue ? text : text === 'true'
      const label = [...pathOf(command), long].join(' ')
      const words = pathOf(command)
      const [fromFile, inFile] = await parsed(words, long, { file: toFile(a), args: [] })
      const [fromEnv, inEnv] = await parsed(words, long, { file: toFile(a), env: b, args: [] })
      const args = takesValue ? [long, c] : [long]
      const [fromArgument, isArgument] = await parsed(words, long, { file: toFile(a), env: b, args })
      const isInFile = words[0] !== 'store'
      t.same([inEnv, isArgument], ['environment', 'cli'], label)
      if (isInFile) t.equal(inFile, 'config', label)
      if (b !== a) t.notSame(fromEnv, fromFile, label)
      if (c !== b || !takesValue) t.notSame(fromArgument, fromEnv, label)
      count++
    }
  }
  t.ok(count > 120, `${count} options`)
})

test('a variable that is no option is an error, and one that conflicts with an argument gives way', async (t) => {
  const cases: Readonly<Record<string, readonly [args: string, code: number, message: string]>> = {
    'PARTNER_API_STROE=x': [
      'partners list',
      2,
      'variable PARTNER_API_STROE.\n(Did you mean PARTNER_API_STORE?)',
    ],
    'PARTNER_API_SERVE_PROT=1': ['partners list', 2, '(Did you mean PARTNER_API_SERVE_PORT?)'],
    'PARTNER_API_KEYS_REVOKE_YES=1': ['scopes list', 2, 'variable PARTNER_API_KEYS_REVOKE_YES.'],
    'PARTNER_API_SERVE_LIMIT=key=1/60': ['partners list', 0, ''],
    'PARTNER_API_PORT=tcp://10.0.0.1:8787': ['partners list', 0, ''],
    'PARTNER_API_WEB_PORT_8787_TCP_PROTO=tcp': ['partners list', 0, ''],
    'PARTNER_API_SERVICE_PORT_HTTP=80': ['partners list', 0, ''],
    'PARTNER_API_PARTNERS_SUSPEND_WAIT=1': ['partners suspend acme-travel --dry-run', 0, ''],
    'PARTNER_API_KEYS_UPDATE_NEVER=1': [`keys update ${id} --expires 2d --dry-run`, 0, ''],
    'PARTNER_API_JSON=1': ['reports --csv', 0, ''],
    'PARTNER_API_REPORTS_CSV=1': ['reports --json', 0, ''],
    'PARTNER_API_KEYS_UPDATE_EXPIRES=2d': [`keys update ${id} --never --dry-run`, 0, ''],
  }
  for (const [variable, [args, code, message]] of Object.entries(cases)) {
    const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(variable)!
    const ended = await configured({ store }, args, { [name]: value })
    t.equal(ended.code, code, `${variable} ${args}: ${ended.stderr}`)
    t.ok(ended.stderr.includes(message), ended.stderr)
  }
  const both = { PARTNER_API_SERVE_PORT: '9', PORT: '8' }
  t.match(await shown('port', {}, 'config show serve --json', both), {
    value: '9',
    source: 'environment PARTNER_API_SERVE_PORT',
  })
})

test('a file that others can write is refused', async (t) => {
  const secret = join(folder, 'secret')
  writeFileSync(secret, `${key}\n`)
  chmodSync(secret, 0o620)
  const env = { PARTNER_API_STORE: store }
  const commands = [
    `--config ${secret} partners list`,
    `verify --url http://127.0.0.1:9 --partner acme-travel --key-file ${secret}`,
    `serve --port 0 --webhook-key-file ${secret}`,
    `keys import - --algorithm hmac-sha256 --secret-file ${secret}`,
  ]
  for (const args of commands) {
    const { code, stderr } = await runProgram(args.split(' '), { env })
    const stated =
      `error: Other accounts can write ${secret}, so it is not used. To fix it: chmod go-w ${secret}\n`
    t.same([code, stderr.replace(/^warning: .*\n/, '')], [2, stated], args)
  }
})

test('an invalid file names its member', async (t) => {
  const cases: readonly (readonly [values: unknown, args: string, message: string])[] = [
    [
      { stroe: store },
      'partners list',
      `${file}: stroe: There is no such option or command.\n(Did you mean store`,
    ],
    [{ store, keys: { lsit: {} } }, 'keys list', `${file}: keys.lsit: There is no such`],
    [{ serve: { port: 'x' } }, 'serve', `${file}: serve.port: It must be a whole number`],
    [{ serve: { limit: [{}] } }, 'serve', `${file}: serve.limit: It must be text or a number.`],
    [{ json: 'yes' }, 'partners list', `${file}: json: It must be true or false.`],
    [{ serve: 1 }, 'serve', `${file}: serve: It must be an object of options.`],
    [
      { partners: { remove: { yes: true } } },
      'partners remove x',
      'partners.remove.yes: It must be an argument.',
    ],
    [
      '{"store": "postgres://u:hush@',
      'partners list',
      `The configuration file ${file} is not a JSON object.`,
    ],
    ['{}', '--config nowhere.json partners list', "nowhere.json can't be read: there is no such file."],
  ]
  for (const [values, args, message] of cases) {
    const { code, stdout, stderr } = await configured(values, args)
    t.same([code, stdout], [2, ''])
    t.ok(stderr.startsWith('error: ') && stderr.includes(message), stderr)
    t.notMatch(stderr, 'hush')
  }
  const { code, stderr } = await configured({}, 'serve', { PARTNER_API_SERVE_LOG: 'x', PORT: '' })
  t.match([code, stderr], [2, /^error: PARTNER_API_SERVE_LOG: Allowed choices are off, errors, all\.\n$/])
})

test('a password in a file that others can read is reported, and shown to nobody', async (t) => {
  const values = { store: 'postgres://user:hush@db.example/x' }
  chmodSync(file, 0o644)
  const open = await configured(values, 'config show')
  t.match(open, { code: 0, stdout: 'postgres://[credentials]@db.example/x', stderr: `chmod 600 ${file}` })
  chmodSync(file, 0o600)
  const closed = await configured(values, 'config show')
  t.equal(closed.stderr, '')
  t.notMatch(open.stdout + open.stderr + closed.stdout, 'hush')
  const named = await configured({ store: 'postgres://user@db.example/x' }, 'config show')
  t.match(named, { stdout: 'postgres://user@db.example/x' }, 'a user name alone is shown')
})
