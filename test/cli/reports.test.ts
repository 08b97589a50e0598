/** `reports`: numbers from the store, a chart that fits the terminal, CSV, and a page for people. */
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { toSpans } from '../../cli/reports/counts.ts'
import { displayWidth } from '../../cli/output/text.ts'
import { sparkline } from '../../cli/reports/text.ts'
import { daysIn } from '../../core/reports/period.ts'
import { programOn, runProgram, temporaryFolder } from '../support/cli-program.ts'
import { createReportsStore, EVIL, PERIOD, YEAR } from '../support/reports-store.ts'

const folder = temporaryFolder()
const file = join(folder, 'store.db')
const PARTNER_API_STORE = `sqlite:${file}`
const { run, json, refuses } = programOn(PARTNER_API_STORE)
await createReportsStore(file)

const requests = daysIn(YEAR).reduce((sum, _, index) => sum + 1_001 + index * 10, 0)
const onTerminal = (columns: number, ...args: string[]) =>
  runProgram(['reports', ...args], { columns, env: { PARTNER_API_STORE, NO_COLOR: '1' } })

test('the report of one partner has the numbers of the wire', async (t) => {
  const empty = programOn(`sqlite:${join(folder, 'empty.db')}`)
  await empty.run('migrate')
  t.match(await empty.run('reports'), { code: 0, stdout: '', stderr: 'There are no partners yet.' })
  const { code, data } = await json('reports', 'acme', ...PERIOD)
  t.equal(code, 0)
  t.same(data.period, YEAR)
  t.equal(data.requests.total, requests)
  t.same(data.requests.by_endpoint.map(({ path }: { path: string }) => path), ['/service/public/profiles'])
  t.same(data.signups.by_country, [{ country: 'DE', signups: 8 }, { country: 'XK', signups: 4 }])
  t.same(data.signups.by_plan.at(-1), { plan: EVIL, signups: 2 })
  t.same(data.daily.length, 365)
  t.same(data.daily[31], { date: '2026-02-01', signups: 6, requests: 1_311, errors: 4 })
  const { data: named } = await json('reports', 'acme', ...PERIOD, '--service-name', 'partners')
  t.equal(named.requests.by_endpoint[0].path, '/partners/public/profiles')
  await refuses(t, {
    'reports nobody': '1 partner_not_found',
    'reports --from 2026-02-30': '2 usage',
    'reports --from 2026-02-02 --to 2026-02-01': '2 usage',
    'reports --from 2024-01-01 --to 2025-01-01': '2 usage',
    'reports --csv': '2 usage',
    'reports --csv --html report.html': '2 usage',
  })
  const late = await run('reports', '--from', '2026-02-02', '--to', '2026-02-01')
  t.equal(late.stderr, 'error: --from must not be after --to.\n')
})

test('the report on all partners has a row for each, and a total', async (t) => {
  const { data } = await json('reports', ...PERIOD)
  t.match(data, [
    { partner: '=1+"2"', name: 'Name of zeta', requests: { total: requests + 730 }, signups: { total: 0 } },
    { partner: 'acme', period: YEAR, requests: { total: requests, errors: 1_457 }, signups: { total: 12 } },
    { partner: 'quiet', requests: { total: 0, errors: 0 }, signups: { total: 0 } },
    { partner: 'wide', name: EVIL, requests: { total: requests + 365 } },
  ])
  t.equal(data.length, 4)
  t.same(data[1].daily.length, 365)
  const { stdout } = await onTerminal(100, ...PERIOD)
  t.match(stdout, /^PARTNER +REQUESTS +ERRORS +ERROR RATE +SIGNUPS +BY MONTH\n/)
  t.match(stdout, /^quiet +0 +0 +– +0 +▁{12}$/m)
  t.match(stdout, new RegExp(`^Total +${(requests * 3 + 1_095).toLocaleString('en')} .* 12 +▃.*█$`, 'm'))
})

test('the chart fits the terminal, and its spans add up', async (t) => {
  const { data } = await json('reports', 'acme', ...PERIOD)
  for (const columns of [20, 28, 40, 80, 200]) {
    for (
      const days of [['2026-02-01', '2026-02-01'], ['2026-02-01', '2026-03-02'], ['2025-12-31', '2026-12-31']]
    ) {
      const { stdout } = await onTerminal(columns, 'acme', '--from', days[0]!, '--to', days[1]!)
      const lines = /^BY [^]*?\n\n/m.exec(stdout)?.[0].split('\n') ?? ['']
      t.ok(lines.every((line) => displayWidth(line) <= columns), `${days} in ${columns} columns`)
      if (columns >= 40 || days[0] === days[1]) t.match(lines[0], /^BY /)
      if (columns >= 40 && days[0] !== days[1]) {
        t.ok(Math.max(...lines.map(displayWidth)) > columns / 2.5, 'fills it')
      }
      t.notMatch(stdout, '\u001b')
    }
  }
  const narrow = await onTerminal(28, 'acme', '--from', '2026-01-02', '--to', '2026-01-02')
  t.match(narrow.stdout, / <0\.1%/, 'numbers are not cut')
  for (
    const [most, unit, length] of [[365, 'day', 365], [364, 'week', 53], [52, 'month', 12], [
      1,
      'month',
      12,
    ]] as const
  ) {
    const grouped = toSpans(data.daily, most)
    t.same([grouped.unit, grouped.spans.length], [unit, length])
    t.equal(grouped.spans.reduce((sum, span) => sum + span.requests, 0), requests)
    t.equal(grouped.spans.reduce((sum, span) => sum + span.signups, 0), 12)
  }
  t.match(toSpans(data.daily, 60).spans[1], { from: '2026-01-05', to: '2026-01-11' }, 'from Monday to Sunday')
  const [quiet, piped] = await Promise.all([
    run('reports', 'quiet', ...PERIOD),
    run('reports', 'wide', ...PERIOD),
  ])
  t.notMatch(quiet.stdout, 'BY ')
  t.match(
    piped.stdout,
    `partner:     <script>alert("1")</script>'&\\u{7}\\u{1b}[2J\\u{202e}旅行 שלום (wide)\n`,
  )
  t.match(await onTerminal(80, 'acme', ...PERIOD), { stdout: /^Kosovo \(XK\) +4$/m })
})

/** The rows of a CSV document (RFC 4180): the values by the names in its first line. */
function readCsv(text: string): Record<string, string>[] {
  const [names = [], ...rows] = text.trimEnd().split('\r\n').map((line) =>
    Array.from(
      `${line},`.matchAll(/"((?:[^"]|"")*)",|([^",]*),/g),
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
    )
  )
  return rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ''])))
}

test('CSV has a row for each partner and day', async (t) => {
  const { stdout } = await run('reports', '--csv', ...PERIOD)
  t.notMatch(stdout.replaceAll('\r\n', ''), /[\r\n]/)
  const rows = readCsv(stdout)
  t.equal(rows.length, 4 * 365)
  t.same(rows[0], { partner: `'=1+"2"`, day: '2026-01-01', requests: '1003', errors: '1', signups: '0' })
  const sum = rows.reduce((sum, row) => sum + Number(row['requests']), 0)
  t.equal(sum, requests * 3 + 1_095)
  const one = await run('reports', 'acme', '--csv', '--from', '2026-02-01', '--to', '2026-02-01')
  t.equal(one.stdout, 'partner,day,requests,errors,signups\r\nacme,2026-02-01,1311,4,6\r\n')
})

test('a page replaces nothing but a report', async (t) => {
  const page = join(folder, 'page.html')
  const write = (...more: string[]) => json('reports', 'acme', '--html', page, ...more)
  t.match(await write(), { code: 0, data: { file: page } })
  t.match(await write(...PERIOD), { code: 0 })
  t.match(readFileSync(page, 'utf8'), '<p>2026-01-01 to 2026-12-31, UTC. Created ')
  writeFileSync(page, 'my notes')
  t.match(await write(), { code: 1, error: { code: 'file_exists' } })
  t.equal(readFileSync(page, 'utf8'), 'my notes')
  const link = join(folder, 'link.html')
  symlinkSync(page, link)
  t.match(await json('reports', '--html', link), { code: 1, error: { code: 'file_exists' } })
  t.match(await json('reports', '--html', folder), { code: 1, error: { code: 'file_exists' } })
  t.match(await json('reports', '--html', ''), { code: 1, error: { code: 'file_not_created' } })
  t.match(await json('reports', '--html', join(page, 'x')), { code: 1, error: { code: 'file_not_created' } })
  t.same(readdirSync(folder).filter((name) => name.endsWith('.tmp')), [])
})

test('a sparkline has one bar for each value', (t) => {
  const values = [0, 1, 250, 500, 1_000]
  t.equal(sparkline(values), '▁▂▃▅█')
  t.equal(sparkline([0, 0]), '▁▁')
  t.equal(sparkline([]), '')
  t.equal(sparkline(values, 3), '▁▁ ▂▂ ▃▃ ▅▅ ██')
  t.end()
})
