/** `leaks scan` on files, folders, standard input and the history of a repository. */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { crc32 } from 'node:zlib'
import { type Test, test } from 'tap'
import { mintKey } from '../../core/keys/format.ts'
import {
  documentOf,
  type Ended,
  MAIN,
  newFile,
  programOn,
  runProcess,
  runProgram,
  temporaryFolder,
} from '../support/cli-program.ts'

interface Row {
  readonly path: string
  readonly line: number
  readonly column: number
  readonly id: string
  readonly [name: string]: unknown
}

const { id, text: key } = mintKey('spk', 'live')
const wrong = `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`
const chunkLength = 1 << 18

function write(folder: string, contents: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [name, content] of Object.entries(contents)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  return folder
}

function utf16(text: string, littleEndian: boolean): Buffer {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le')
  return littleEndian ? bytes : bytes.swap16()
}

/** Expects no secret in what is printed. */
function checkOutput(t: Test, ended: Ended, secrets: readonly string[] = [key]): void {
  for (const secret of secrets) t.notMatch(ended.stdout + ended.stderr, secret.slice(-38, -4))
}

async function scan(t: Test, paths: readonly string[], input: string | Uint8Array = '') {
  const ended = await runProgram(['leaks', 'scan', '--no-store', '--json', ...paths], { input })
  checkOutput(t, ended)
  const rows: readonly Row[] = documentOf(ended).data
  return { ...ended, rows, places: rows.map(({ path, line, column }) => `${path}:${line}:${column}`) }
}

test('keys are found by format and checksum, whatever is around them', async (t) => {
  const folder = write(temporaryFolder(), {
    'a.env': `KEY=${key}`,
    'b/crlf.txt': `one\r\ntwo ${key}\r\n${key}\r\n`,
    'c.json': `{"umlaut":"äöü","text":"\\n${key}\\n","😀":"${key}x"}`,
    'd.js': `https://x.example/?k=%20${key}&partner=demo`,
    'e-wrong.txt': `${wrong}\nspk_live_${'a'.repeat(12)}_${'b'.repeat(38)}\n_live_\n${key.slice(0, -1)}`,
    'f-le.txt': utf16(`ü\n ${key}`, true),
    'g-be.txt': utf16(`ü\n ${key}`, false),
    'h.bin': Buffer.concat([Buffer.from([0x7f, 0]), Buffer.from(key)]),
    'i-late-nul.log': `${' '.repeat(9_000)}\0\n${key}`,
    '.git/config': key,
    'sub/.git': key,
    'dist/x.min.js': key,
  })
  symlinkSync('.', join(folder, 'loop'))
  symlinkSync(join(folder, 'a.env'), join(folder, 'link'))
  const found = await scan(t, [folder])
  t.equal(found.code, 1)
  t.same(found.places.map((place) => place.slice(folder.length + 1)), [
    'a.env:1:5',
    'b/crlf.txt:2:5',
    'b/crlf.txt:3:1',
    'c.json:1:27',
    `c.json:1:${27 + key.length + 9}`,
    'd.js:1:25',
    'dist/x.min.js:1:1',
    'f-le.txt:2:2',
    'g-be.txt:2:2',
    'i-late-nul.log:2:1',
  ])
  const expected = {
    id,
    environment: 'live',
    hint: `…${key.slice(-4)}`,
    partner: null,
    name: null,
    state: null,
  }
  for (const row of found.rows) t.match(row, expected)
  t.match(found.stderr, '10 keys in 9 files, 1 binary file skipped.')

  t.same((await scan(t, [folder, '--exclude', 'x.min.js', 'b'])).rows.length, 7)
  const { stdout } = await runProgram(['leaks', 'scan', '--no-store', join(folder, 'a.env')])
  t.equal(stdout, `${join(folder, 'a.env')}:1:5: key ${id} (live, …${key.slice(-4)})\n`)
})

test('keys across chunks and in lines of any length are found once', async (t) => {
  const folder = temporaryFolder()
  const at = (offset: number) => `${'é'.repeat(100)}${'x'.repeat(offset - 200)}${key}`
  const offsets = [0, 1, 8, 9, 10, 11, 30, 56, 57, 58, 66, 67, 68].map((before) => chunkLength - before)
  write(folder, Object.fromEntries(offsets.map((offset) => [`${offset}`, `${at(offset)} ${key}`])))
  const found = await scan(t, [folder])
  const columns = offsets.toSorted((a, b) => a < b ? -1 : 1).flatMap((offset) => {
    return [offset - 99, offset - 98 + key.length].map((column) => `${join(folder, `${offset}`)}:1:${column}`)
  })
  t.same(found.places, columns)

  const line = Buffer.alloc(20 << 20, 'spk_live_ ')
  line.write(key, line.length - 100)
  const long = write(temporaryFolder(), { line, hole: ' '.repeat(10_000) })
  const length = 250 << 20
  truncateSync(join(long, 'hole'), length)
  appendFileSync(join(long, 'hole'), key)
  const before = process.memoryUsage.rss()
  const places = [`${join(long, 'hole')}:1:${length + 1}`, `${join(long, 'line')}:1:${line.length - 99}`]
  t.same((await scan(t, [long])).places, places)
  t.ok(process.memoryUsage.rss() - before < 150 << 20, 'in bounded memory')

  const bytes = await scan(t, ['-'], Buffer.from(`a\n${key}${key}\n`))
  t.match(bytes, { code: 1, places: ['-:2:1', `-:2:${1 + key.length}`] })
})

test('keys in the history of a repository have their commit and file', async (t) => {
  const folder = temporaryFolder()
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const git = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('git', [...identity, ...args], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stdout + stderr)
    return stdout
  }
  git('init', '-q')
  write(folder, { 'src/app.js': `one\nconst key = '${key}'\n`, 'big.txt': 'a line of text\n'.repeat(20_000) })
  git('add', '.')
  git('commit', '-qm', 'Add')
  const commit = git('rev-parse', 'HEAD').trim()
  write(folder, { 'src/app.js': 'one\n' })
  git('commit', '-qam', 'Remove')
  const { rows } = await scan(t, ['-'], git('log', '-p'))
  t.match(rows, [{ id, file: 'src/app.js' }, { id, file: 'src/app.js', commit, path: '-' }])
  t.not(rows[0]!['commit'], commit)

  // A pipe has chunks of 64 KiB, which end anywhere.
  const long = Array.from({ length: 8_000 }, (_, n) => `diff --git a/folder/f${n} b/folder/f${n}\n+${key}\n`)
  const piped = await runProcess(['leaks', 'scan', '--no-store', '--json', '-'], { input: long.join('') })
  t.same(documentOf(piped).data.map(({ file }: Row) => file), long.map((_, n) => `folder/f${n}`))

  const hook = join(folder, '.git/hooks/pre-commit')
  const command = `'${process.execPath}' '${MAIN}'`
  const example = readFileSync(new URL('../../examples/pre-commit', import.meta.url), 'utf8')
  writeFileSync(hook, example.replace('npx --no-install partner-api', command), { mode: 0o755 })
  // The hook does not depend on how git shows differences.
  git('config', 'diff.external', 'true')
  git('config', 'color.ui', 'always')
  write(folder, { '.gitattributes': '*.txt -diff', '0.bin': 'one\0two', 'other.txt': `one\n${key}\n` })
  git('add', '.')
  const staged = await runProgram(['leaks', 'scan', '--no-store', '-'], {
    input: git('diff', '--cached', '--text', '--no-ext-diff', '--no-color'),
  })
  t.match(staged, { code: 1, stdout: /^standard input:\d+:2 \(other\.txt\): key / })
  t.throws(() => git('commit', '-qm', 'Leak'), /key \w{12} \(live/)
  git('commit', '--no-verify', '-qm', 'Leak')
  write(folder, { 'other.txt': 'one\nnone\n' })
  git('commit', '-qam', 'A key may be removed')
  write(folder, { 'wide.txt': utf16(`ü\n${key}\n`, true) })
  git('add', '.')
  t.throws(() => git('commit', '-qm', 'Leak'), /wide\.txt.*: key \w{12} \(live/)

  // The recipe of the docs.
  const secrets = Array.from({ length: 3 }, () => mintKey('spk', 'live'))
  const [older, newer, merged] = secrets.map(({ text }) => ({ 'src/app.js': text }))
  for (const contents of [older!, newer!]) {
    write(folder, contents)
    git('stash')
  }
  git('checkout', '-qb', 'side', 'HEAD~1')
  git('commit', '--allow-empty', '-qm', 'Side')
  git('merge', '-q', '--no-commit', '-')
  write(folder, merged!)
  git('commit', '--no-verify', '-qam', 'Merge')
  git('checkout', '-q', '-')
  const history = await scan(t, ['-'], git('log', '-p', '-m', '--all', '--reflog', '--text'))
  const found = new Set(history.rows.map((row) => row.id))
  t.same(secrets.filter((secret) => !found.has(secret.id)), [], 'stashes and merges')
})

test('names of files and folders', async (t) => {
  const folder = write(temporaryFolder(), { [`a-${key}/none`]: 'none', [`b-${key}`]: key, bin: `\0${key}` })
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/c-`), Buffer.from([0xff])]), key)
  const [a, b] = ['a-spk_[key]', 'b-spk_[key]'].map((name) => join(folder, name))
  const found = await scan(t, [folder])
  t.same(found.places, [`${a}:null:null`, `${b}:null:null`, `${b}:1:1`, `${join(folder, 'c-\ufffd')}:1:1`])
  for (const format of ['text', 'sarif']) {
    const ended = await runProgram(['leaks', 'scan', '--no-store', '--format', format, folder])
    checkOutput(t, ended)
    t.match(ended, { code: 1, stdout: format === 'text' ? `${a} (its name): key ${id}` : '/b-spk_%5Bkey%5D' })
  }

  const bin = join(folder, 'bin')
  t.match(await scan(t, [bin]), {
    code: 3,
    rows: [],
    stderr: `${bin} was not searched: it is a binary file.`,
  })
  const pipe = join(folder, 'pipe')
  if (spawnSync('mkfifo', [pipe]).status !== 0) return
  symlinkSync('/dev/zero', join(folder, 'endless'))
  for (const path of [pipe, join(folder, 'endless')]) {
    t.match(await scan(t, [path]), {
      code: 3,
      stderr: 'neither a file nor a folder: to search a pipe, pass -',
    })
  }
})

test('what cannot be read is reported, and never counts as free of keys', async (t) => {
  const folder = write(temporaryFolder(), { none: 'none', some: key })
  const gone = join(folder, 'gone')
  const unread = await scan(t, [join(folder, 'none'), gone])
  t.match(unread, { code: 3, rows: [], stderr: `${gone} was not searched: there is no such file.` })
  t.match(await scan(t, [join(folder, 'some'), gone]), { code: 1, stderr: /gone was not searched/ })
  if (existsSync('/proc/self/mem')) t.match(await scan(t, ['/proc/self/mem']), { code: 3, stderr: 'EIO' })
  t.equal((await runProgram(['leaks', 'scan'])).code, 2)
  t.match(await runProgram(['leaks', 'scan', '--no-store', '--revoke', folder]), {
    code: 2,
    stderr: '--store URL',
  })
  t.match(await runProgram(['leaks', 'scan', '--yes', folder]), {
    code: 2,
    stderr: '--yes requires --revoke',
  })
})

test('with the store, keys have their partner, name and state, and are revoked', async (t) => {
  const store = `sqlite:${newFile()}`
  const { run, json } = programOn(store)
  await run('migrate')
  await run('partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles')
  const issue = async (name: string) => (await json('keys', 'issue', 'acme', '--name', name)).data
  const [plain, off, gone] = [await issue('Pl\u0301ugin'), await issue('Off'), await issue('Gone')]
  await run('keys', 'disable', off.id)
  await run('keys', 'revoke', gone.id)
  const forged = forgeKey(plain.id)
  const other = mintKey('other', 'test').text
  const secrets = [plain.key, off.key, gone.key, forged, other]
  const folder = write(temporaryFolder(), {
    keys: `${[plain.key, plain.key, off.key, gone.key, forged, key, other].join('\n')}\n`,
  })
  const found = await json('leaks', 'scan', folder)
  checkOutput(t, found, secrets)
  const states = ({ data }: { data: readonly Row[] }) =>
    data.map((row) => `${row['partner']} ${row['name']} ${row['state']}`)
  const twice = Array(2).fill('acme Pl\u0301ugin active')
  const expected = [...twice, 'acme Off disabled', 'acme Gone revoked', ...Array(2).fill('null null null')]
  t.same(states(found), expected, 'a key of another prefix is not of this store')
  t.equal((await json('leaks', 'scan', folder, '--no-store')).data.length, 7)
  t.match(await run('leaks', 'scan', folder), {
    code: 1,
    stdout: /:1:1: key \w{12} \(live, …\w{4}\) of acme, .*: active\n/,
  })
  t.match((await run('leaks', 'scan', folder)).stdout, /, not of this store\n/)

  const document = JSON.parse((await run('leaks', 'scan', folder, '--format', 'sarif')).stdout)
  checkSarif(t, document)
  t.same(document.runs[0].results.map(({ level }: { level: string }) => level), [
    ...['error', 'error', 'error', 'note', 'error', 'error'],
  ])
  checkOutput(t, { stdout: JSON.stringify(document), stderr: '', code: 0, signal: null }, secrets)

  const known = ['leaks', 'scan', '--ignore-revoked', write(temporaryFolder(), { old: gone.key })]
  t.match(await run(...known), { code: 0, stdout: '' }, 'a revoked key in a history')
  t.match(await run(...known, folder), { code: 1, stdout: /^(?!.*: revoked)/ })
  t.match(await run(...known, '--no-store'), { code: 2, stderr: '--ignore-revoked needs the store' })

  const asked = await run('leaks', 'scan', folder, '--revoke')
  t.ok(asked.stderr.includes(`key ${plain.id} (live`), 'the places are printed before the prompt')
  t.match(asked, {
    code: 2,
    stderr: `This revokes 2 keys: ${plain.id} of acme and ${off.id} of acme.`,
  })
  t.equal((await json('keys', 'show', plain.id)).data.state, 'active')
  const revoked = await json('leaks', 'scan', folder, '--revoke', '--yes')
  t.equal(revoked.code, 1)
  t.same(new Set(states(revoked).slice(0, 4).map((text) => text.split(' ').at(-1))), new Set(['revoked']))
  t.equal((await json('keys', 'show', off.id)).data.state, 'revoked')
})

/** A key with a valid checksum that was never issued. */
function forgeKey(id: string): string {
  const unsigned = `spk_live_${id}_${'f'.repeat(32)}`
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let checksum = ''
  for (let rest = crc32(unsigned); checksum.length < 6; rest = Math.floor(rest / 62)) {
    checksum = digits[rest % 62] + checksum
  }
  return unsigned + checksum
}

/** What code scanning needs of SARIF 2.1.0. */
// deno-lint-ignore no-explicit-any -- the document is what is tested
function checkSarif(t: Test, { version, $schema, runs: [run] }: any): void {
  t.equal(version, '2.1.0')
  t.match($schema, /sarif-2\.1\.0\.json$/)
  const { driver } = run.tool
  t.match(driver, { name: String, rules: [{ id: 'partner-api-key', help: { text: String } }] })
  t.equal(run.invocations[0].executionSuccessful, true)
  for (
    const { ruleId, ruleIndex, message, locations: [{ physicalLocation }], partialFingerprints } of run
      .results
  ) {
    t.equal(driver.rules[ruleIndex].id, ruleId)
    t.match(message.text, /^key \w{12} /)
    t.match(physicalLocation.artifactLocation.uri, /^file:\/\/\/[!-~]+\/keys$/)
    const { startLine, startColumn, endColumn } = physicalLocation.region
    t.ok(startLine >= 1 && startColumn >= 1 && endColumn > startColumn)
    t.match(Object.values(partialFingerprints), [/^\w{12}$/])
  }
}
