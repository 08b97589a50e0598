/** Metrics of webhooks for Prometheus. */
import type { Store } from '../../core/ports/store.ts'
import { metric, type MetricsSample } from '../metrics.ts'
import type { RunningWebhooks } from './deliverer.ts'

/** For the `add` of metrics. */
export async function measureWebhooks(
  { webhooks: port }: Store,
  { outcomes }: RunningWebhooks,
): Promise<MetricsSample> {
  const active = (await port!.listWebhooks()).filter(({ state }) => state === 'active')
  const counts = await Promise.all(active.map(({ id }) => port!.countPending(id)))
  const attempts = Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  return [
    metric('webhook_deliveries_total', 'Attempts to deliver events to webhooks', attempts),
    metric(
      'webhook_pending',
      'Deliveries that wait, of active webhooks',
      counts.reduce((sum, each) => sum + each, 0),
    ),
  ]
}
