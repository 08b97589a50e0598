import { test } from 'tap'
import { choose, outputsOf, readTap } from './run.ts'

const tap = (...lines: string[]) => readTap(['TAP version 14', ...lines, ''].join('\n'))

test('points of subtests are counted once, and a subtest without points counts as one', (t) => {
  const lines = ['# Subtest: one', '    ok 1 - a', '    ok 2 - b', '    1..2', 'ok 1 - one # time=1ms']
  t.match(tap(...lines, 'ok 2 - c', '1..2'), { passed: 3, failures: [], noise: [] })
  t.equal(tap('# Subtest: property', '    1..0', 'ok 1 - property', '1..1').passed, 1)
  t.end()
})

test('a failure has its path and its details, and its subtest does not count again', (t) => {
  const inner = [
    '    # Subtest: b',
    '        not ok 1 - bad',
    '          ---',
    '          diff: a',
    '          ...',
  ]
  const lines = [
    '# Subtest: a',
    ...inner,
    '        1..1',
    '    not ok 1 - b',
    '    1..1',
    'not ok 1 - a',
    '1..1',
  ]
  const { passed, failures } = tap(...lines)
  t.equal(passed, 0)
  t.match(failures, [{ name: 'a > b > bad', detail: /diff:\s+a/ }])
  t.equal(failures.length, 1)
  t.end()
})

test('skips have their reasons, and what the program itself printed is kept apart', (t) => {
  const { skips, noise } = tap('hello', 'ok 1 - a # SKIP no server', 'not ok 2 - b # TODO later', '1..2')
  t.same(skips, [{ name: 'a', reason: 'no server' }, { name: 'b', reason: 'to do: later' }])
  t.same(noise, ['hello'])
  t.same(tap('1..0 # no database here').skips, [{ name: 'the whole file', reason: 'no database here' }])
  t.end()
})

test('a program that ends early fails', (t) => {
  const outputs = [[], ['1..0 # no tests found'], ['1..0'], ['ok 1 - a'], ['ok 1 - a', '1..2'], [
    'Bail out! why',
  ]]
  for (const output of [...outputs, ['# Subtest: killed', '    ok 1 - a']]) {
    t.equal(tap(...output).failures.length, 1, output.join(' / '))
  }
  t.end()
})

test('words choose files, and parts among all tests', (t) => {
  const quick = ['test/cli/audit.test.ts', 'test/core/text.test.ts']
  const parts = [
    'test/browser/reference.test.ts',
    'test/cli/runtimes.test.ts',
    'test/runtimes/matrix.test.ts',
  ]
  const files = [...quick, ...parts]
  t.same(choose(files, [], false), quick)
  t.same(choose(files, [], true), files)
  t.same(choose(files, ['cli', 'core/text'], false), quick)
  t.same(choose(files, ['./test/cli/runtimes'], false), ['test/cli/runtimes.test.ts'])
  t.same(choose(files, ['runtimes'], true), parts.slice(1))
  t.same(choose(files, ['parts'], true), parts)
  t.same(choose(files, ['cli', 'browser'], true), [quick[0], parts[0], parts[1]])
  t.throws(() => choose(files, ['nothing'], false), /"nothing" in its path\./)
  t.throws(() => choose(files, ['nothing'], true), /Parts: runtimes, /)
  t.end()
})

test('files that ran together are read one by one', (t) => {
  const lines = [
    'TAP version 14',
    '# Subtest: test/a.test.ts',
    '    # Subtest: one',
    '        ok 1 - x',
    '        1..1',
    '    ok 1 - one',
    'printed',
    '    1..1',
    'ok 1 - test/a.test.ts # time=1ms',
    '',
    '# Subtest: test/b.test.ts',
    '    not ok 1 - y',
    '    1..1',
    'not ok 2 - test/b.test.ts',
    '# Subtest: test/c.test.ts',
    '    ok 1 - z',
  ]
  const [a, b, c] = Array.from(outputsOf(lines.join('\n')).values(), readTap)
  t.match(a, { passed: 1, failures: [], noise: ['printed'] })
  t.match(b, { passed: 0, failures: [{ name: 'y' }] })
  t.match(c, { passed: 1, failures: [{ name: 'the program' }] }, 'it ended the process')
  t.end()
})
