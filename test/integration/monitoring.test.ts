/** The metrics of servers under a mixed load, as Prometheus' own tools, another parser and the dashboard see them. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { binary } from '../package/installed.ts'
import { MAIN, temporaryFolder } from '../support/cli-program.ts'
import { isNotReadyBeforeStop, sendMixedLoad, serveDemo } from '../support/monitored.ts'
import { readPage, ROOT } from './docs.ts'

const folder = temporaryFolder()

const promtool = (args: readonly string[], input = '') =>
  spawnSync('promtool', args, { input, encoding: 'utf8', cwd: folder })
const noPromtool = promtool(['--version']).status === 0 ? false : 'promtool is not installed'

/** Prints the samples of a scrape, read by the client library of another language. */
const parse = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families as read
print(json.dumps([[s.name, s.labels, repr(s.value)] for f in read(sys.stdin.read()) for s in f.samples]))`
const python = ['python3', '/usr/bin/python3'].find((path) =>
  spawnSync(path, ['-c', 'import prometheus_client']).status === 0
)
const noPython = python === undefined && 'prometheus_client for Python is not installed'

type Sample = readonly [name: string, labels: Readonly<Record<string, string>>, value: string]

const demo = await serveDemo(t, 'store.db', ['--metrics-by', 'partner'])
const scraped = await sendMixedLoad(demo)

t.test('promtool finds nothing to criticise in a scrape', { skip: noPromtool }, (t) => {
  const { status, stdout, stderr } = promtool(['check', 'metrics'], scraped)
  t.same([status, stdout, stderr], [0, '', ''])
  t.equal(promtool(['check', 'metrics'], scraped.replace('requests_total', 'requests')).status, 3)
  t.end()
})

t.test('another parser reads a scrape', { skip: noPython }, (t) => {
  const { stdout, stderr } = spawnSync(python!, ['-c', parse], {
    input: scraped,
    encoding: 'utf8',
  })
  t.equal(stderr, '')
  const samples: Sample[] = JSON.parse(stdout)
  const value = (name: string, labels: Readonly<Record<string, string | number>>) =>
    Number(
      samples.find(([of, given]) =>
        of === `partner_api_${name}` &&
        Object.entries(labels).every(([label, text]) => given[label] === text)
      )?.[2],
    )
  t.equal(value('requests_total', { route: 'profiles', status: '200', code: '', partner: 'demo' }), 4)
  t.equal(
    value('requests_total', { route: 'profiles', status: '401', code: 'key_invalid', partner: '' }),
    1,
  )
  t.equal(value('requests_total', { route: '', status: '404', code: 'route_not_found', method: 'GET' }), 1)
  t.equal(value('requests_total', { route: 'verify-key', method: 'POST', status: '200' }), 1)
  t.equal(value('request_duration_seconds_count', { route: 'profiles' }), 6)
  t.equal(value('request_duration_seconds_bucket', { route: 'profiles', le: '+Inf' }), 6)
  t.equal(
    value('response_cache_lookups_total', { result: 'hit' }),
    2,
    'a response is kept when it is asked for again',
  )
  t.equal(value('response_cache_lookups_total', { result: 'miss' }), 2)
  t.equal(value('key_cache_lookups_total', { result: 'miss' }), 1)
  t.equal(value('limit_decisions_total', { policy: 'verify', decision: 'allowed' }), 1)
  t.equal(value('limit_decisions_total', { policy: 'authfail', decision: 'allowed' }), 1)
  t.equal(value('store_call_duration_seconds_count', { operation: 'findKey' }), 1)
  t.equal(value('store_call_errors_total', { operation: 'findKey' }), 0)
  t.same([value('keys_expiring', { days: '3' }), value('keys_expiring', { days: '14' })], [1, 2])
  t.same([value('store_unavailable', {}), value('replicas', {})], [0, 1])
  t.ok(value('revision_age_seconds', {}) <= value('revision_age_limit_seconds', {}))
  t.end()
})

/** The names of metrics in queries. */
const namesIn = (queries: readonly string[]) =>
  queries.flatMap((query) => query.match(/\b(?:partner_api|process|nodejs)_\w+/g) ?? [])
const { panels } = JSON.parse(readPage('examples/monitoring/dashboard.json'))
const queries: string[] = panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }: { expr: string }) => expr)
)
const alerts = readPage('examples/monitoring/alerts.yml')

t.test('the dashboard and the alert rules use metrics that exist', (t) => {
  const names = new Set(scraped.match(/^\w+/gm))
  for (const [what, used] of Object.entries({ dashboard: namesIn(queries), alerts: namesIn([alerts]) })) {
    t.ok(used.length >= 8, what)
    t.same(used.filter((name) => !names.has(name)), [], what)
  }
  t.end()
})

t.test('promtool accepts the queries and the alert rules', { skip: noPromtool }, (t) => {
  const rules = queries.map((query, index) => ({
    record: `panel_${index}`,
    expr: query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }))
  writeFileSync(join(folder, 'queries.yml'), JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  writeFileSync(join(folder, 'alerts.yml'), alerts)
  writeFileSync(join(folder, 'tests.yml'), readPage('test/integration/alerts.test.yml'))
  for (
    const args of [['check', 'config', join(ROOT, 'examples/monitoring/prometheus.yml')], [
      'check',
      'rules',
      'queries.yml',
    ], ['test', 'rules', 'tests.yml']]
  ) {
    const { status, stdout, stderr } = promtool(args)
    t.equal(status, 0, stdout + stderr)
  }
  t.end()
})

for (
  const [name, command] of [['bun', [binary('bun')]], ['deno', [binary('deno'), 'run', '-A', '-q']]] as const
) {
  t.test(`a server is not ready before it stops: ${name}`, (t) =>
    isNotReadyBeforeStop(t, name, [...command, MAIN]))
}
