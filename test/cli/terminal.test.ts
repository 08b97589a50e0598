/** What people see on a terminal: tables that fit it, colours, and what an interrupt leaves. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import {
  displayWidth,
  formatRelative,
  formatStack,
  printable,
  printableJson,
  shellQuote,
} from '../../cli/output/text.ts'
import {
  cleanEnv,
  ending,
  MAIN,
  newFile,
  noTerminal,
  programOn,
  runOnTerminal,
  runProgram,
  startProgram,
} from '../support/cli-program.ts'

const PARTNER_API_STORE = `sqlite:${newFile()}`
const { run, json } = programOn(PARTNER_API_STORE)
const long = 'A plugin whose name is much longer than people make them, 旅行代理店 included'
await run('partners', 'create', 'acme-travel-international', '--name', long, '--module', 'profiles')
const { data: key } = await json('keys', 'issue', 'acme-travel-international', '--name', long)

const onTerminal = (columns: number, command: string, env: Readonly<Record<string, string>> = {}) =>
  runProgram(command.split(' '), { columns, env: { PARTNER_API_STORE, NO_COLOR: '1', ...env } })

test('tables fit the terminal', async (t) => {
  for (const command of ['partners list', 'audit list', 'modules list', 'scopes list']) {
    for (const columns of [80, 120]) {
      const { stdout } = await onTerminal(columns, command)
      const widths = stdout.split('\n').map(displayWidth)
      t.ok(widths.every((width) => width <= columns), `${command} in ${columns} columns`)
      t.ok(command !== 'audit list' || Math.max(...widths) > columns - 5, 'no more is cut than needed')
    }
  }
  const { stdout } = await onTerminal(80, 'audit list')
  t.match(stdout, 'acme-travel-international')
  t.match(stdout, key.id)
  t.match(stdout, / name…$/m)
  const unknown = await onTerminal(0, 'audit list')
  t.same(unknown.stdout, (await run('audit', 'list')).stdout, 'a terminal without a size is a pipe')
  t.match(unknown.stdout, `${long}\n`)
})

test('colours are for terminals, NO_COLOR and FORCE_COLOR', async (t) => {
  const heading = '\u001b[1mSCOPE '
  const label = '\u001b[31merror:\u001b[39m '
  const shown = async (env: Readonly<Record<string, string>>, columns?: number) => {
    const [list, failed] = await Promise.all(
      ['scopes list', 'keys show x'].map((command) =>
        runProgram(command.split(' '), {
          env: { PARTNER_API_STORE, ...env },
          ...(columns !== undefined && { columns }),
        })
      ),
    )
    return [list!.stdout.includes(heading), failed!.stderr.includes(label)]
  }
  const yes = [true, true]
  const no = [false, false]
  t.same(await shown({ NO_COLOR: '' }, 80), yes)
  t.same(await shown({ NO_COLOR: '1' }, 80), no)
  t.same(await shown({ TERM: 'dumb' }, 80), no)
  t.same(await shown({}), no)
  t.same(await shown({ FORCE_COLOR: '1', NO_COLOR: '1' }), yes)
  t.same(await shown({ FORCE_COLOR: '0' }, 80), no)
})

test('hidden characters are escaped', (t) => {
  const text = 'ac\u200bme \ufeff\u{e0041}'
  t.equal(printable(text), 'ac\\u{200b}me \\u{feff}\\u{e0041}')
  t.equal(JSON.parse(printableJson(JSON.stringify(text))), text)
  t.notMatch(printableJson(JSON.stringify(text)), '\u200b')
  const stack = formatStack(new Error('No.\n    at here \u001b[31m'))
  t.match(stack, /^Error: No\.\\u\{a\} {4}at here \\u\{1b\}\[31m\n {4}at .*terminal\.test\.ts/)
  t.end()
})

test(
  'an argument of a printed command is the same in a shell',
  { skip: process.platform === 'win32' },
  (t) => {
    for (const text of ["O'Neil", "$'a'", 'می\u200cخواهم', "'\\\u200d\u{e0041}7", 'a\nb']) {
      const quoted = shellQuote(text)
      t.equal(printable(quoted), quoted)
      const command = ['-c', `printf %s ${quoted}`]
      t.equal(execFileSync('bash', command, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }), text)
    }
    t.end()
  },
)

test('times are in words', (t) => {
  const hour = 3_600_000
  const day = 86_400_000
  const expected: readonly (readonly [ms: number | undefined, text: string])[] = [
    [undefined, 'never'],
    [999, 'now'],
    [-999, 'now'],
    [1_000, 'in 1 second'],
    [-59_999, '59 seconds ago'],
    [60_000, 'in 1 minute'],
    [-2 * hour + 1, '119 minutes ago'],
    [2 * hour, 'in 2 hours'],
    [-2 * day + 1, '47 hours ago'],
    [2 * day, 'in 2 days'],
    [13 * day - 1, 'in 12 days'],
    [100 * day - 1, 'in 99 days'],
    [100 * day, 'in 3 months'],
    [-365 * day, '12 months ago'],
    [730 * day, 'in 2 years'],
  ]
  for (const [ms, text] of expected) {
    t.equal(formatRelative(ms === undefined ? ms : 1e12 + ms, 1e12), text)
  }
  t.end()
})

test('an interrupt leaves an import undone, and a key in its file or not issued', async (t) => {
  const file = newFile()
  const env = { PARTNER_API_STORE: `sqlite:${file}` }
  const { run, json } = programOn(env.PARTNER_API_STORE)
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles')

  const importing = spawn(process.execPath, [MAIN, 'content', 'import', 'industries', '-'], {
    env: cleanEnv(env),
  })
  const imported = ending(importing)
  const lines = Array.from({ length: 5_000 }, (_, n) => `{"slug":"i${n}","name":"Industry ${n}"}\n`).join('')
  // More than a pipe holds, so the program is reading when this has been written.
  await new Promise((resolve) => importing.stdin.write(lines, resolve))
  importing.kill('SIGINT')
  t.match(await imported, { code: null, signal: 'SIGINT', stdout: '', stderr: /^Interrupted: .* nothing/ })
  t.equal((await run('content', 'export', 'industries')).stdout, '')
  t.equal((await run('audit', 'verify')).code, 0)

  const database = new DatabaseSync(file)
  database.exec('BEGIN IMMEDIATE')
  const out = `${file}.key`
  const issuing = startProgram(['keys', 'issue', 'acme', '--name', 'x', '--out', out], { env })
  const issued = ending(issuing)
  // As soon as possible: an empty file must not be left either.
  const looks = Array.from({ length: 100 }, () => out)
  while (!looks.some((path) => existsSync(path))) await setImmediate()
  issuing.kill('SIGINT')
  database.exec('ROLLBACK')
  database.close()
  t.match(await issued, { code: null, signal: 'SIGINT' })
  const { data: keys } = await json('keys', 'list', 'acme')
  const written = existsSync(out) ? [readFileSync(out, 'utf8').split('_')[2]] : []
  t.same(keys.map((each: { readonly id: string }) => each.id), written)
})

test('keys revoke asks on a terminal only', { skip: noTerminal }, async (t) => {
  const revoke = async (answer: string, options = '') => {
    const { data: { id } } = await json('keys', 'issue', 'acme-travel-international', '--name', 'Old')
    const command = `'${process.execPath}' '${MAIN}' keys revoke ${id} ${options}; echo "exit $?"`
    const until = options === '' ? 'to confirm' : 'Revoked permanently'
    const shown = await runOnTerminal(command, { PARTNER_API_STORE }, until, `${answer || id}\r`)
    return [shown, (await json('keys', 'show', id)).data.state]
  }
  t.match(await revoke('no'), [
    /revokes key \S+ \(Old\) of acme-travel-international permanently\..*exit 1/s,
    'active',
  ])
  t.match(await revoke(''), [/Revoked permanently.*exit 0/s, 'revoked'])
  t.match(await revoke('', '--yes'), [/^(?!.*to confirm).*exit 0/s, 'revoked'])
})
