import { test } from 'tap'
import { readTap } from './read-tap.ts'

const tap = (...lines: string[]) => readTap(['TAP version 14', ...lines, ''].join('\n'))

test('points of subtests are counted once', (t) => {
  const tally = tap(
    '# Subtest: one',
    '    ok 1 - a',
    '    ok 2 - b',
    '    1..2',
    'ok 1 - one # time=1ms',
    'ok 2 - c',
    '1..2',
  )
  t.equal(tally.passed, 3)
  t.same(tally.failures, [])
  t.end()
})

test('a subtest without points counts as one', (t) => {
  t.equal(tap('# Subtest: property', '    1..0', 'ok 1 - property', '1..1').passed, 1)
  t.end()
})

test('a failure has its path and its details, and its subtest does not count again', (t) => {
  const tally = tap(
    '# Subtest: outer',
    '    # Subtest: inner \\# 1',
    '        not ok 1 - bad',
    '          ---',
    '          diff: ok 2 - not a point',
    '          ...',
    '        1..1',
    '    not ok 1 - inner \\# 1',
    '    1..1',
    'not ok 1 - outer',
    '1..1',
  )
  t.same(tally.failures, [{ path: 'outer › inner # 1 › bad', detail: 'diff: ok 2 - not a point' }])
  t.equal(tally.passed, 0)
  t.end()
})

test('skips and to-dos have their reasons, and an escaped hash is no directive', (t) => {
  const tally = tap('ok 1 - a # SKIP no server', 'not ok 2 - b # TODO later', 'ok 3 - c \\# SKIP d', '1..3')
  t.same(tally.skips, [{ path: 'a', reason: 'no server' }, { path: 'b', reason: 'to do: later' }])
  t.equal(tally.passed, 1)
  t.same(tap('1..0 # no database here').skips, [{ path: 'the whole file', reason: 'no database here' }])
  t.end()
})

test('what is not said is a failure', (t) => {
  for (
    const silence of [[], ['1..0 # no tests found'], ['1..0'], ['ok 1 - a'], ['ok 1 - a', '1..2'], [
      'Bail out! why',
    ]]
  ) t.equal(tap(...silence).failures.length, 1, silence.join(' / '))
  t.same(tap('# Subtest: killed', '    ok 1 - a').failures.length, 1)
  t.end()
})

test('what the program itself printed is kept apart', (t) => {
  t.same(tap('hello', '# comment', 'ok 1 - a', '1..1').noise, ['hello'])
  t.end()
})
