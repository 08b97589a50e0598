/** The metrics of a service in this process. */
import t from 'tap'
import { createMetrics, measureWebhooks, type MetricsSample, renderMetrics } from '../../adapters/metrics.ts'
import { startWebhooks } from '../../adapters/webhooks/deliverer.ts'
import { createPartnerApi } from '../../core/api.ts'
import { tableRows } from '../integration/docs.ts'
import { openMemoryStore } from '../support/memory-store.ts'

/** The metrics after three requests. */
async function sampleHere(): Promise<MetricsSample> {
  const store = await openMemoryStore()
  const metrics = createMetrics({ by: 'partner' })
  const api = createPartnerApi({ store }, { observers: [metrics.observer] })
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
