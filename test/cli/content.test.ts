import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { EXAMPLE_LINES } from '../../cli/files.ts'
import { programOn, temporaryFolder } from '../support/cli-program.ts'

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const run = (args: readonly string[], input: string | Uint8Array = '') =>
  programOn(`sqlite:${file}`, { input }).run('content', ...args)
const json = (args: readonly string[], input: string | Uint8Array = '') =>
  programOn(`sqlite:${file}`, { input }).json('content', ...args)
const wrongLine = (line: number, reason: string) => ({
  code: 'invalid_content',
  lines: [{ line, field: null, reason }],
})
const fixture = (kind: string) => new URL(`../../fixtures/content/${kind}.jsonl`, import.meta.url)
const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

test('a failed import and a dry run create no store', async (t) => {
  const latin1 = Buffer.from('{"slug":"a","name":"A"}\n{"name":"\xe9"}', 'latin1')
  const unreadable = (detail: string) => ({ code: 2, error: { code: 'unreadable_file', detail } })
  const invalid = { code: 1, error: { code: 'invalid_content' } }
  const cases: readonly (readonly [args: readonly string[], input: string | Uint8Array, expected: object])[] =
    [
      [['plans', join(folder, 'nowhere.jsonl')], '', unreadable('no such file')],
      [['plans', folder], '', unreadable('it is a folder')],
      [['industries', '-'], latin1, { code: 1, error: wrongLine(2, 'is not UTF-8') }],
      [['people', '-'], '', {
        code: 2,
        error: { code: 'usage', detail: 'profiles, banners, industries, plans' },
      }],
      [['plans', '-'], lines({ slug: 'a' }), invalid],
      [['profiles', '-'], readFileSync(fixture('profiles')), invalid],
    ]
  for (const [args, input, expected] of cases) {
    t.match(await json(['import', ...args], input), expected, args.join(' '))
  }
  const dry = await run(['import', 'industries', '-', '--dry-run'], lines({ slug: 'a', name: 'A' }))
  t.match(dry, { code: 0, stdout: /1 +a +created/, stderr: 'Nothing was written' })
  t.notOk(existsSync(file))
})

test('a line of more than 1 MiB is refused without reading it completely', async (t) => {
  const longest = (bytes: number) => {
    const before = '{"slug":"a","name":"'
    const after = '"}'
    return `\n${before}${'x'.repeat(bytes - before.length - after.length)}${after}\n`
  }
  const tooLong = 'is longer than 1 MiB'
  t.match((await json(['import', 'industries', '/dev/zero'])).error, wrongLine(1, tooLong))
  t.match((await json(['import', 'industries', '-'], longest(1_048_577))).error, wrongLine(2, tooLong))
  const just = await json(['import', 'industries', '-'], longest(1_048_576))
  t.match(just.error, { lines: [{ line: 2, field: 'name' }] })
})

test('import reports created, replaced and unchanged records', async (t) => {
  const path = join(folder, 'industries.jsonl')
  writeFileSync(path, readFileSync(fixture('industries')))
  const first = await run(['import', 'industries', path])
  const stderr = `Created a new, empty store at ${file}.\n`
  t.match(first, { code: 0, stderr, stdout: 'industries: 17 created, 0 replaced, 0 unchanged\n' })
  const { data } = await json(['import', 'industries', path])
  t.same(data, { kind: 'industries', dry_run: false, created: 0, replaced: 0, unchanged: 17 })
  const changed = '\ufeff' + lines({ slug: 'education', name: 'Lehre' }) + '\r\n' +
    lines({ slug: 'a', name: 'line \u2028 break' })
  const piped = await run(['import', 'industries', '-'], changed)
  t.match(piped, { code: 0, stdout: 'industries: 1 created, 1 replaced, 0 unchanged\n' })
  t.match(await run(['import', 'industries', '-'], '\n'), {
    code: 0,
    stderr: 'warning: Standard input is empty.\n',
  })
})

test('a dry run lists the changes it would make', async (t) => {
  const input = '\n' +
    lines({ slug: 'education', name: 'Learning' }, { slug: 'a', name: 'line \u2028 break' }, {
      slug: 'b',
      name: 'B',
    })
  t.same((await json(['import', 'industries', '-', '--dry-run'], input)).data, {
    kind: 'industries',
    dry_run: true,
    created: 1,
    replaced: 1,
    unchanged: 1,
    lines: [
      { line: 2, slug: 'education', change: 'replaced' },
      { line: 4, slug: 'b', change: 'created' },
    ],
  })
  const human = await run(['import', 'industries', '-', '--dry-run'], input)
  t.equal(human.code, 0)
  t.match(human.stdout, /^LINE +SLUG +WOULD BE\n2 +education +replaced\n/)
  t.match(human.stdout, /\n4 +b +created\n$/)
  t.match(human.stderr, 'Nothing was written. industries: 1 created, 1 replaced, 1 unchanged.')
  const same = await run(['import', 'industries', '-', '--dry-run'], readFileSync(fixture('industries')))
  t.match(same, { code: 0, stdout: /^LINE .*\n\d+ +education +replaced\n$/ })
  const many = lines(...Array.from({ length: 150 }, (_, n) => ({ slug: `new-${n}`, name: 'New' })))
  const bounded = await run(['import', 'industries', '-', '--dry-run'], many)
  t.equal(bounded.stdout.split('\n').length, 102)
  t.match(bounded.stderr, /^… and 50 more\. --json .*\nNothing was written\. industries: 150 created/)
  t.notMatch((await run(['export', 'industries'])).stdout, 'Learning')
})

test('invalid lines are reported with line, field and reason', async (t) => {
  const input = lines({ slug: 'fine', name: 'Fine' }, { slug: 'Not fine', name: 7 }) + 'no json\n' +
    lines({ slug: 'x', name: 'X', parent_slug: 'nowhere' })
  const { code, error } = await json(['import', 'industries', '-'], input)
  t.match([code, error.code], [1, 'invalid_content'])
  const places = (error['lines'] as { line: number; field: string | null }[]).map(({ line, field }) =>
    `${line} ${field}`
  )
  t.same(places, ['2 slug', '2 name', '3 null', '4 parent_slug'])
  for (const dryRun of [[], ['--dry-run']]) {
    const human = await run(['import', 'industries', '-', ...dryRun], input)
    t.same([human.code, human.stdout], [1, ''])
    t.match(
      human.stderr,
      /^error: Nothing was imported: 4 errors .*\n {2}line 2: slug .*\n {2}line 2: name .*\n {2}line 3 is not JSON /,
    )
    t.notMatch(human.stderr, '\r', 'no progress without a terminal')
  }
  t.notMatch((await run(['export', 'industries'])).stdout, '"fine"')

  const many = await run(['import', 'plans', '-'], '{}\n'.repeat(2_000))
  t.match(many.stderr, /\n {2}\d+ lines \(1, 2, 3, …\): name .*\n/)
  t.match(many.stderr, /… and [\d,]+ more\n$/)
  t.ok(many.stderr.split('\n').length < 10, 'equal errors are one line')

  const profile = { name: 'A', headline: 'A', country: 'DE', industry: 'nowhere', published_at: null }
  const profiles = lines(...['p1', 'p2', 'p3', 'p4'].map((slug) => ({ slug, ...profile })))
  const homeless = await run(['import', 'profiles', '-'], profiles)
  t.match(homeless.stderr, 'Import industries first: partner-api content import industries FILE')
  t.match(homeless.stderr, /\n {2}4 lines \(1, 2, 3, …\): industry must be an industry that exists.*\n$/)
})

test('JSON arrays, CSV and other formats are recognized', async (t) => {
  const cases = {
    '[\n{"slug":"a","name":"A"}\n]\n': /is a JSON array, .*jq -c '\.\[\]' FILE/,
    '\ufeff\n [{"slug":"a","name":"A"}]': /is a JSON array/,
    '{\n  "slug": "a"\n}\n': /is JSON with line breaks in its objects, .*jq -c \. FILE/,
    'slug,name\na,A\n':
      /looks like CSV, but import reads JSON Lines: one object per line, such as {"slug":"mills","name":"Mills"}\.$/,
    '"slug";"parent slug"\r\na;b\r\n': /looks like CSV/,
    'slug,e-mail\na,b\n': /looks like CSV/,
    'mills,"Mills",https://mills.example\n': /looks like CSV/,
  }
  for (const [input, detail] of Object.entries(cases)) {
    for (const dryRun of [[], ['--dry-run']]) {
      const ended = await json(['import', 'industries', '-', ...dryRun], input)
      t.match(ended, { code: 1, error: { code: 'wrong_format', detail } })
    }
  }
})

test('a line that is not JSON is named with what it should be, such as a line with all required fields', async (t) => {
  const text = 'no json\n' + lines({ slug: 'fine', name: 'Fine' }) + 'no json\n[]\n'
  t.match(
    (await run(['import', 'industries', '-'], text)).stderr,
    /\n {2}2 lines \(1, 3\): each is not JSON at character 1\n {2}line 4 must be a JSON object\n {2}A line of industries: {"slug":"mills","name":"Mills"}\n$/,
  )
  for (const [kind, line] of Object.entries(EXAMPLE_LINES)) {
    const args = kind === 'keys' ? ['keys', 'import'] : ['content', 'import', kind]
    const { error } = await programOn('memory:', { input: '{}\n' }).json(...args, '-')
    const missing = (error['lines'] as { field: string; reason: string }[])
      .filter(({ reason }) => reason === 'is missing').map(({ field }) => field)
    t.same(Object.keys(JSON.parse(line)), missing, kind)
  }
})

test('export writes the imported lines', async (t) => {
  const plain = await run(['export', 'industries'])
  const records = plain.stdout.trimEnd().split('\n').map((line) => JSON.parse(line))
  t.equal(records.length, 18)
  t.same((await json(['export', 'industries'])).data, records)
  t.match(await run(['import', 'industries', '-'], plain.stdout), {
    stdout: '0 created, 0 replaced, 18 unchanged',
  })
  t.match(await run(['export', 'plans']), { code: 0, stdout: '', stderr: 'no plans' })
  t.same((await json(['export', 'plans'])).data, [])
})

test('remove deletes records by slug and reports missing ones', async (t) => {
  const used = await json(['remove', 'industries', 'a', 'education'])
  t.match(used, { code: 1, error: { code: 'content_in_use', detail: 'education' } })
  const missing = await json(['remove', 'industries', 'a', 'nowhere'])
  t.match(missing, { code: 1, error: { code: 'content_not_found', detail: 'nowhere' } })
  const dry = await json(['remove', 'industries', 'a', '--dry-run'])
  t.match(dry.data, { kind: 'industries', dry_run: true, removed: ['a'] })
  const done = await json(['remove', 'industries', 'a', 'a'])
  t.match(done, { code: 0, data: { kind: 'industries', removed: ['a'] } })
  t.equal((await run(['remove', 'industries'])).code, 2)
})
