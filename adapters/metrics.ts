/**
 * Metrics of the service for Prometheus, by @prometheus-io/client.
 *
 * @module
 */
import { collectDefaultMetrics, Registry } from '@prometheus-io/client'
import { type ProblemCode, PROBLEMS } from '../core/http/problem.ts'
import { endOf } from '../core/keys/lifecycle.ts'
import { formatValue } from '../core/http/redact.ts'
import { clockOf } from '../core/lib/clock.ts'
import { assertOptions } from '../core/lib/options.ts'
import { delay, type MaybePromise, timeout } from '../core/lib/promise.ts'
import { MS_PER_DAY } from '../core/lib/time.ts'
import type { CompletedRequest, Measurements, Observer } from '../core/ports/observer.ts'
import { readPartners, type Store } from '../core/ports/store.ts'
import type { WebhookStore } from '../core/ports/webhooks.ts'
import type { RunningWebhooks } from './webhooks/deliverer.ts'

/** A value of a metric and its labels; a histogram has several, each with the name of its part. */
export type MetricValue = { labels: Record<string, string | number>; value: number; metricName?: string }
/** A metric and its values. */
export type Metric = Record<'name' | 'help' | 'type', string> & { values: MetricValue[] }
/** The metrics of this process at one instant. */
export type MetricsSample = readonly Metric[]

/** The metrics of this process. */
export interface Metrics {
  /**
   * The observer that measures a service, its requests, and the keys of its store that end
   * soon. Pass it in `observers`.
   */
  readonly observer: Observer
  /** Adds metrics that are read when the metrics of this process are collected. */
  add(source: () => MaybePromise<MetricsSample>): void
  /** Reads the metrics of this process. */
  collect(): Promise<MetricsSample>
}

/** The most partners with a label value of their own. */
const maxPartners = 1_000
/** The label value of further partners, and of unregistered methods. */
const other = '_OTHER'

/**
 * Creates the metrics of this process.
 *
 * @param options.by Adds the label `partner` to `partner_api_requests_total`, for up to 1,000 partners.
 * @example
 * ```ts
 * const metrics = createMetrics()
 * const api = createPartnerApi({ store }, { observers: [metrics.observer] })
 * const { text } = await renderMetrics(await metrics.collect())
 * ```
 */
export function createMetrics(options: { readonly by?: 'partner' | undefined } = {}): Metrics {
  assertOptions('createMetrics', options, { by: 'a text' })
  const { by } = options
  if (by !== undefined && by !== 'partner') {
    throw new TypeError(`createMetrics: by must be "partner", not ${formatValue(by)}.`)
  }
  const requests = createRequestCounter(by)
  // From 0: Prometheus sees no increase in the first value of a series.
  const zeros = Object.keys(PROBLEMS).map((code) => [code, 0])
  const problems: Record<ProblemCode, number> = Object.fromEntries(zeros)
  const responseCache = { hit: 0, miss: 0 }
  const requestTimes = createHistogram('request_duration_seconds', 'Time to the response', 'route')
  const callTimes = createHistogram('store_call_duration_seconds', 'Calls of the store', 'operation')
  const callErrors: Record<string, number> = {}
  const sources: (() => MaybePromise<MetricsSample>)[] = []
  const processMetrics = createProcessMetrics()

  const observer: Observer = {
    serviceCreated({ store, measurements }) {
      sources.push(async () => measure(await measurements()), createKeyCounter(store))
    },
    requestCompleted(completed) {
      const route = completed.route?.name ?? ''
      requests.count(route, completed)
      requestTimes.observe(route, completed.durationMs)
      if (completed.code !== undefined) problems[completed.code]++
      if (completed.responseCache !== undefined) responseCache[completed.responseCache]++
    },
    storeCall(operation, call) {
      const startedAt = performance.now()
      const record = (errors: number): void => {
        callTimes.observe(operation, performance.now() - startedAt)
        callErrors[operation] = (callErrors[operation] ?? 0) + errors
      }
      try {
        const result = call()
        if (result instanceof Promise) result.then(() => record(0), () => record(1))
        else record(0)
        return result
      } catch (error) {
        record(1)
        throw error
      }
    },
  }

  return {
    observer,
    add: (source) => sources.push(source),
    async collect() {
      const added = await Promise.all([...sources, processMetrics].map((source) => source()))
      return [
        metric('requests_total', 'Responses by endpoint, method, status and problem code', requests.values),
        metric('problems_total', 'Responses that are problems, by code', byLabel('code', problems)),
        requestTimes.metric,
        metric('response_cache_lookups_total', 'Responses by cache result', byLabel('result', responseCache)),
        callTimes.metric,
        metric('store_call_errors_total', 'Calls that failed or timed out', byLabel('operation', callErrors)),
        ...added.flat(),
      ].map((metric) => ({ ...metric, values: metric.values.filter(({ value }) => Number.isFinite(value)) }))
        .filter(({ values }) => values.length > 0)
    },
  }
}

/** Counts responses. A map for each label: joining or hashing labels would slow every request. */
function createRequestCounter(by: 'partner' | undefined) {
  const counters = new Map<string, Map<string, Map<string | number, Map<string, MetricValue>>>>()
  const values: MetricValue[] = []
  const partners = new Set<string>()

  function partnerLabel(slug: string | undefined): string {
    if (by === undefined || slug === undefined) return ''
    if (partners.size >= maxPartners && !partners.has(slug)) return other
    partners.add(slug)
    return slug
  }

  return {
    values,
    count(route: string, { method = other, status, code, partner }: CompletedRequest): void {
      const slug = partnerLabel(partner)
      const byMethod = inner(counters, route)
      const byCode = inner(byMethod, method)
      const byPartner = inner(byCode, code ?? status)
      const counter = byPartner.get(slug)
      if (counter !== undefined) {
        counter.value++
        return
      }
      const labels = { route, method, status, code: code ?? '', ...(by && { partner: slug }) }
      const created = { labels, value: 1 }
      byPartner.set(slug, created)
      values.push(created)
    },
  }
}

/** Renders metrics in Prometheus' text format 0.0.4. */
export async function renderMetrics(sample: MetricsSample): Promise<{ type: string; text: string }> {
  // @prometheus-io/client renders values that were collected before only as an aggregate of processes: here, of one.
  const metrics = sample.map((metric) => ({ ...metric, aggregator: 'first' }))
  const registry = Registry.aggregate([metrics] as never)
  return { type: Registry.PROMETHEUS_CONTENT_TYPE, text: await registry.metrics() }
}

/** Makes a metric: a counter if its name ends in `_total`, else a gauge. */
function metric(name: string, help: string, given: number | MetricValue[]): Metric {
  const type = name.endsWith('_total') ? 'counter' : 'gauge'
  const values = typeof given === 'number' ? [{ labels: {}, value: given }] : given
  return { name: `partner_api_${name}`, help, type, values }
}

function byLabel(label: string, counts: Readonly<Record<string, number>>, labels = {}): MetricValue[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { ...labels, [label]: name }, value }))
}

function inner<K, V extends Map<unknown, unknown>>(map: Map<K, V>, key: K): V {
  let found = map.get(key)
  if (found === undefined) map.set(key, found = new Map() as V)
  return found
}

function createProcessMetrics(): () => Promise<MetricsSample> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return async () => {
    const metrics = await registry.getMetricsAsJSON() as unknown as MetricsSample
    // The others break the rules for names, or are 0 on other runtimes.
    return metrics.filter(({ name }) => !/^nodejs_(?:active|eventloop_utilization|heap_space)/.test(name))
  }
}

function measure(state: Measurements): MetricsSample {
  const decisions = Object.entries(state.limits)
    .flatMap(([policy, counts]) => byLabel('decision', counts, { policy }))
  const ageSeconds = (state.revisionAgeMs ?? NaN) / 1000
  const limitSeconds = state.maxRevisionAgeMs / 1000
  return [
    metric('key_cache_lookups_total', 'Authentications by cache result', byLabel('result', state.keyCache)),
    metric('limit_decisions_total', 'Decisions of the limiter by policy', decisions),
    metric(
      'store_unavailable',
      '1 if the last read of the revision failed, else 0',
      state.isStoreAvailable ? 0 : 1,
    ),
    metric('revision_age_seconds', 'Time since the store confirmed the revision', ageSeconds),
    metric('revision_age_limit_seconds', 'Age from which the revision is not used', limitSeconds),
    metric(
      'directory_invalid_rows_total',
      'Rows of a custom directory that were left out',
      state.invalidRows,
    ),
    metric(
      'dropped_records_total',
      'Requests, problems and uses of keys that were not recorded: their partner had used up its share of a buffer',
      byLabel('kind', state.dropped),
    ),
    metric('replicas', 'Servers that share the store', state.replicas),
  ]
}

/** Counts keys every ten minutes, by partner and in the background: no scrape waits, and no query takes long. */
function createKeyCounter(
  store: Pick<Store, 'listPartners' | 'listKeys' | 'clock' | 'now'>,
): () => MetricsSample {
  const { now } = clockOf(store)
  let counts: Record<string, number> = {}
  let dueAt = 0
  async function count(now: number): Promise<void> {
    const found = { 3: 0, 14: 0 }
    for await (const { slug } of readPartners(store)) {
      const filter = { partner: slug, endsBefore: now + 14 * MS_PER_DAY, now }
      for (const key of await store.listKeys(filter, undefined, 1_000)) {
        // The successor of a rotated key is there.
        if (key.successorId !== undefined) continue
        found[14]++
        if (endOf(key)! < now + 3 * MS_PER_DAY) found[3]++
      }
      await delay(1)
    }
    counts = found
  }
  return () => {
    if (performance.now() >= dueAt) {
      dueAt = performance.now() + 600_000
      count(now()).catch(() => counts = {})
    }
    return [
      metric(
        'keys_expiring',
        'Keys without a successor that end within so many days',
        byLabel('days', counts),
      ),
    ]
  }
}

/** Measures deliveries, for `Metrics.add`. A store that does not respond leaves out what it holds. */
export async function measureWebhooks(
  { webhooks }: Pick<Store, 'webhooks'>,
  { outcomes }: Pick<RunningWebhooks, 'outcomes'>,
): Promise<MetricsSample> {
  const unknown = () => ({ pending: NaN, failing: NaN })
  const { pending, failing } = await timeout(countWebhooks(webhooks), 1_000, unknown).catch(unknown)
  return [
    metric(
      'webhook_deliveries_total',
      'Attempts to deliver events to webhooks',
      byLabel('outcome', outcomes),
    ),
    metric('webhook_pending', 'Deliveries that wait, of active webhooks', pending),
    metric('webhooks_failing', 'Webhooks that fail, or were disabled because they failed', failing),
  ]
}

async function countWebhooks(port: WebhookStore): Promise<{ pending: number; failing: number }> {
  const webhooks = await port.listWebhooks()
  let pending = 0
  for (const { id, state } of webhooks) {
    if (state === 'active') pending += await port.countPending(id)
    // With a synchronous store, the server would answer no request during this.
    await delay(1)
  }
  return { pending, failing: webhooks.filter(({ failingSince }) => failingSince !== undefined).length }
}

const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.5, 2.5, 7.5, Infinity]

/** A histogram of durations by one label. */
function createHistogram(name: string, help: string, label: string) {
  const series = new Map<string, MetricValue[]>()
  const all = metric(name, help, [])

  function addSeries(of: string): MetricValue[] {
    const part = (suffix: string, le?: object): MetricValue => ({
      metricName: `${all.name}_${suffix}`,
      labels: { [label]: of, ...le },
      value: 0,
    })
    const buckets = bounds.map((bound) => part('bucket', { le: bound === Infinity ? '+Inf' : bound }))
    const parts = [...buckets, part('sum'), part('count')]
    series.set(of, parts)
    all.values.push(...parts)
    return parts
  }

  return {
    metric: { ...all, type: 'histogram' },
    observe(of: string, ms: number): void {
      const parts = series.get(of) ?? addSeries(of)
      const seconds = ms / 1000
      let index = bounds.length
      parts[index]!.value += seconds
      parts[index + 1]!.value++
      while (index > 0 && seconds <= bounds[index - 1]!) parts[--index]!.value++
    },
  }
}
