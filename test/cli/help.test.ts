/** The help of every command: its width and its examples. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'tap'
import { type CliCommand, pathOf } from '../../cli/command.ts'
import { loadProgram } from '../../cli/program.ts'
import { programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'

const program = await loadProgram('0.1.0', process)
const all = (
  command: CliCommand,
): CliCommand[] => [command, ...(command.commands as CliCommand[]).flatMap(all)]
const commands = all(program)
const has = (name: string): boolean => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0

test('the help of every command has its usage and examples, in 80 columns', async (t) => {
  for (const command of commands.filter((each) => each.name() !== 'complete')) {
    const words = pathOf(command)
    const { code, stdout } = await runProgram([...words, '--help'])
    const usage = ['Usage: partner-api', ...words].join(' ')
    t.same([code, stdout.startsWith(usage)], [0, true], usage)
    const isGroup = command.commands.length > 0
    if (!isGroup) t.match(stdout, new RegExp(`Examples?:\n(.*\n)*?.*partner-api.* ${words.join(' ')}`))
    const wide = stdout.split('\n').filter((line) => line.length > 80 && !line.startsWith('  $ '))
    t.same(wide, [], usage)
  }
})

/** Commands that serve, that ask another host, or that run until Ctrl-C: their arguments are parsed only. */
const parsedOnly =
  /\b(?:serve|demo|postgres:\/\/\S+ migrate|keys import)\b|store (?:copy|reconcile)|--url https/

/** What Commander says about arguments. */
const usage = /unknown|too many|missing|is invalid|not specified|cannot be used with/

test('every example works', async (t) => {
  const folder = temporaryFolder()
  const { run, json } = programOn(`sqlite:${join(folder, 'template.db')}`)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles')
  const { data: key } = await json('keys', 'issue', 'acme', '--name', 'Plugin')
  const line = { slug: 'old-mill', name: 'Mill', headline: 'H', country: 'DE', industry: 'travel' }
  const profile = { ...line, published_at: '2026-01-01T00:00:00Z', tags: [] }
  writeFileSync(join(folder, 'industries.jsonl'), '{"slug":"travel","name":"Travel"}\n')
  writeFileSync(
    join(folder, 'profiles.jsonl'),
    ['old-mill', 'northern-light'].map((slug) => `${JSON.stringify({ ...profile, slug })}\n`).join(''),
  )
  writeFileSync(join(folder, 'last-seal'), (await run('audit', 'seal')).stdout)
  for (const kind of ['industries', 'profiles']) {
    await run('content', 'import', kind, join(folder, `${kind}.jsonl`))
  }
  mkdirSync(join(folder, 'work'))
  const start = process.cwd()
  process.chdir(folder)
  t.teardown(() => process.chdir(start))

  const examples = commands.flatMap((command) => command.exampleLines).map((example) =>
    example.replaceAll('Zt81mQv04KsD', key.id).replaceAll('/var/lib/', `${folder}/`)
  )
  t.ok(examples.length > 60)
  for (const [index, example] of [...new Set(examples)].entries()) {
    const segment = example.split(/ \| /).find((part) => part.includes('partner-api '))!
    const rest = example.slice(example.indexOf(segment) + segment.length).replace(/^ \| /, '')
    const [, variables = '', words = ''] =
      /^((?:[A-Z_]+=\S+ )*)partner-api (.*?)(?: [<>] \S+)?$/.exec(segment) ?? []
    const { stdout } = spawnSync('sh', ['-c', `printf '%s\\n' ${words}`], { encoding: 'utf8' })
    const store = join(folder, 'work', `${index}.db`)
    copyFileSync('template.db', store)
    const given = stdout.trimEnd().split('\n')
    // A store URL that is invalid is refused when all arguments have been parsed.
    const extra = parsedOnly.test(example)
      ? ['--store', 'invalid']
      : given.join(' ').startsWith('partners remove')
      ? ['--yes']
      : []
    const env = {
      PARTNER_API_STORE: `sqlite:${store}`,
      ...Object.fromEntries(variables.trim().split(' ').filter(Boolean).map((each) => each.split('='))),
    }
    const ended = await runProgram([
      ...given.map((word) => word.replace(/\.key$/, `-${index}.key`)),
      ...extra,
    ], {
      env,
      input: readFileSync('profiles.jsonl'),
    })
    if (extra[0] === '--store') {
      t.notMatch(ended.stderr, usage, example)
      continue
    }
    t.ok(ended.code === 0 || ended.code === 1, `${example}: ${ended.code} ${ended.stderr}`)
    t.notMatch(ended.stderr, 'Unexpected error')
    if (!/^jq /.test(rest) || !has('jq') || ended.code !== 0) continue
    t.equal(spawnSync('sh', ['-c', rest], { input: ended.stdout }).status, 0, example)
  }
})
