/** The metrics of servers under a mixed load, as Prometheus' own tools, another parser, the dashboard and the docs see them. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createMetrics, measureWebhooks, type MetricsSample, renderMetrics } from '../../adapters/metrics.ts'
import { startWebhooks } from '../../adapters/webhooks/deliverer.ts'
import { createPartnerApi } from '../../core/api.ts'
import { binary } from '../package/installed.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { programOn, runProcess, startServing, stopServing } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { readPage, ROOT, tableRows } from './docs.ts'

const folder = mkdtempSync(join(tmpdir(), 'partner-api-monitoring-'))
t.teardown(() => rmSync(folder, { recursive: true }))

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

/** Starts a server on a store with sample content. */
async function serveDemo(name: string, options: readonly string[] = [], command?: readonly string[]) {
  const storeUrl = `sqlite:${join(folder, name)}`
  const { json } = programOn(storeUrl)
  const { key } = (await json('demo', '--no-serve')).data
  for (const end of ['2d', '10d', '20d']) await json('keys', 'issue', 'demo', '--name', 'x', '--expires', end)
  const { data: [soonest] } = await json('keys', 'list', '--expiring', '3d')
  await json('keys', 'rotate', soonest.id)
  const monitor = `http://127.0.0.1:${await freePort()}`
  const args = ['serve', '--port', '0', '--metrics', new URL(monitor).port, ...options]
  const served = await startServing(args, storeUrl, { ...(command && { command }), cwd: ROOT })
  t.teardown(() => served.child.kill('SIGKILL'))
  const request = async (path: string, authorization = `Bearer ${key}`, init: RequestInit = {}) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${served.url}${path}`, { ...init, headers })
    await response.arrayBuffer()
    return response.status
  }
  const scrape = async () => await (await fetch(`${monitor}/metrics`)).text()
  return { served, monitor, request, scrape, file: join(folder, name) }
}

const profiles = '/service/public/profiles?partner=demo&limit=5'
const { served, monitor, request, scrape, file } = await serveDemo('store.db', ['--metrics-by', 'partner'])
for (let count = 0; count < 4; count++) await request(profiles)
await request('/service/public/profiles?partner=other')
await request('/service/public/profiles/none?partner=demo')
await request('/nowhere')
await request(profiles, 'Bearer wrong')
await request('/service/developer/verify-key', undefined, { method: 'POST', body: '{"partner":"demo"}' })
await until(async () => (await scrape()).includes('operation="recordUsage"'), 'the write of request counts')
const scraped = await scrape()

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

/** The metrics of a service in this process. */
async function sampleHere(): Promise<MetricsSample> {
  const store = await openMemoryStore()
  const metrics = createMetrics({ by: 'partner' })
  const api = createPartnerApi({ store }, { observers: [metrics.observer] })
  metrics.watch(api, store)
  const webhooks = startWebhooks(store, {})
  metrics.add(() => measureWebhooks(store, webhooks))
  for (const path of ['/service/health', '/service/openapi.json', '/service/health']) {
    await api.fetch(new Request(`http://localhost${path}`))
  }
  await metrics.collect()
  const sample = await metrics.collect()
  await webhooks.close()
  await api.close()
  return sample
}

t.test('the docs list every metric', async (t) => {
  const rows = (await sampleHere()).filter(({ name }) => name.startsWith('partner_api_'))
    .map(({ name, type, values, help }) => {
      const labels = Object.keys(values[0]!.labels).filter((label) => label !== 'le')
      const list = labels.map((label) => label === 'partner' ? '(`partner`)' : `\`${label}\``).join(', ')
      return `| \`${name}\` | ${type} | ${list} | ${help} |`
    })
  t.ok(rows.length > 10)
  t.same(tableRows('docs/monitor.md', 'metrics'), rows)
})

t.test('metrics are rendered as text', async (t) => {
  const { text } = await renderMetrics(await sampleHere())
  t.match(
    text,
    /^partner_api_requests_total\{route="health",method="GET",status="200",code="",partner=""\} 2$/m,
  )
  t.match(text, /^partner_api_request_duration_seconds_count\{route="health"\} 2$/m)
  t.match(text, /^partner_api_replicas 1$/m)
  t.match(text, /^partner_api_problems_total\{code="key_revoked"\} 0$/m, 'problems count from 0')
  t.match(text, /^process_start_time_seconds \d{10}/m)
})

t.test('partners have at most 1,000 values of the label', async (t) => {
  const { observer, collect } = createMetrics({ by: 'partner' })
  for (let number = 0; number < 1_005; number++) {
    observer.requestCompleted!({ requestId: 'x', status: 200, durationMs: 1, partner: `p${number}` })
    observer.requestCompleted!({ requestId: 'x', status: 200, durationMs: 1, partner: 'p0' })
  }
  const requests = (await collect()).find(({ name }) => name === 'partner_api_requests_total')!.values
  const count = (partner: string) => requests.find(({ labels }) => labels['partner'] === partner)?.value
  t.same([requests.length, count('p0'), count('p999'), count('p1000'), count('_OTHER')], [
    1_001,
    1_006,
    1,
    undefined,
    5,
  ])
})

t.test('observers see calls of the store and what they throw', async (t) => {
  const { observer, collect } = createMetrics()
  t.equal(observer.storeCall!('sync', () => 1), 1)
  t.throws(() =>
    observer.storeCall!('sync', () => {
      throw new Error('full')
    }), { message: 'full' })
  await t.rejects(async () => await observer.storeCall!('async', () => Promise.reject(new Error('away'))), {
    message: 'away',
  })
  const { text } = await renderMetrics(await collect())
  t.match(text, /errors_total\{operation="sync"\} 1\n.*errors_total\{operation="async"\} 1/)
  t.match(text, /call_duration_seconds_count\{operation="sync"\} 2/)
})

const statusOf = async (url: string) => (await fetch(url)).status

t.test('the listener has three paths, and the public port none of them', async (t) => {
  t.same(
    await Promise.all(
      ['/live', '/ready', '/metrics?x', '/', '/service/health'].map((path) => statusOf(monitor + path)),
    ),
    [200, 200, 200, 404, 404],
  )
  const [get, head, post] = await Promise.all(
    ['GET', 'HEAD', 'POST'].map((method) => fetch(`${monitor}/ready`, { method })),
  )
  t.strictSame([head!.status, head!.headers.get('content-length'), await head!.text()], [
    200,
    get!.headers.get('content-length'),
    '',
  ])
  t.strictSame([post!.status, post!.headers.get('allow')], [405, 'GET, HEAD'])
  for (const path of ['/live', '/ready', '/metrics']) t.equal(await request(path), 404, path)
})

t.test('a server whose store is unavailable is not ready, but alive', async (t) => {
  rmSync(file)
  await until(async () => await statusOf(`${monitor}/ready`) === 503, 'the outage')
  t.equal(await statusOf(`${monitor}/live`), 200)
  await until(async () => /^partner_api_store_unavailable 1$/m.test(await scrape()), 'its metric')
  await stopServing(served, 'SIGKILL')
})

for (
  const [name, command] of Object.entries({
    node: undefined,
    bun: [binary('bun')],
    deno: [binary('deno'), 'run', '-A', '-q'],
  })
) {
  t.test(`a server is not ready before it stops: ${name}`, async (t) => {
    const options = ['--drain-delay', '600', '--log', 'errors']
    const main = join(ROOT, 'cli/main.ts')
    const { served, monitor, request, scrape } = await serveDemo(
      `${name}.db`,
      options,
      command && [...command, main],
    )
    t.equal(await request(profiles), 200)
    const names = await scrape()
    for (
      const metric of [
        `partner_api_requests_total{route="profiles"`,
        'process_cpu_seconds_total',
        'nodejs_eventloop_lag_p99_seconds',
      ]
    ) t.match(names, metric)
    served.child.kill('SIGTERM')
    await until(async () => await statusOf(`${monitor}/ready`) === 503, 'the drain')
    t.equal(await request(profiles), 200, 'it accepts connections for the delay')
    const { headers } = await fetch(`${served.url}/service/health`)
    t.equal(headers.get('connection'), 'close')
    t.equal(await statusOf(`${monitor}/live`), 200)
    served.child.kill('SIGINT')
    t.match(await served.ended, { code: null, signal: 'SIGINT' }, 'a second signal ends it at once')
  })
}

t.test('a server drains after the delay, and other addresses are refused', async (t) => {
  const { served, monitor } = await serveDemo('drain.db', ['--drain-delay', '1'])
  const { run } = programOn('memory:')
  // In a process of its own, because a server that stops ends its process.
  const second = ['--store', 'memory:', 'serve', '--port', '0', '--metrics', new URL(monitor).port]
  t.match(await runProcess(second), { code: 1, stderr: '--metrics 0 takes a free one' })
  t.match(await run('serve', '--metrics-by', 'partner'), { code: 2, stderr: '--metrics' })
  for (const address of ['x', '1.2.3.4', '70000', ':1']) {
    t.equal((await run('serve', '--metrics', address)).code, 2, address)
  }
  const { code, stderr } = await stopServing(served, 'SIGHUP')
  t.equal(code, 0)
  t.match(stderr, '"event":"stopped"')
})
