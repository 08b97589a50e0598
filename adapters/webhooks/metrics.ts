/** Metrics of webhooks for Prometheus. */
import { delay, timeout } from '../../core/lib/promise.ts'
import type { Store } from '../../core/ports/store.ts'
import type { WebhookStore } from '../../core/ports/webhooks.ts'
import { metric, type MetricsSample } from '../metrics.ts'
import type { RunningWebhooks } from './deliverer.ts'

/** For the `add` of metrics. A store that does not respond leaves out what it holds. */
export async function measureWebhooks(
  { webhooks }: Store,
  { outcomes }: RunningWebhooks,
): Promise<MetricsSample> {
  const pending = timeout(countPending(webhooks!), 1_000, () => NaN).catch(() => NaN)
  const attempts = Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  return [
    metric('webhook_deliveries_total', 'Attempts to deliver events to webhooks', attempts),
    metric('webhook_pending', 'Deliveries that wait, of active webhooks', await pending),
  ]
}

async function countPending(port: WebhookStore): Promise<number> {
  let sum = 0
  for (const { id, state } of await port.listWebhooks()) {
    if (state === 'active') sum += await port.countPending(id)
    // A synchronous store would not let the server answer requests meanwhile.
    await delay(1)
  }
  return sum
}
