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
  const unknown = () => ({ pending: NaN, failing: NaN })
  const counts = timeout(count(webhooks!), 1_000, unknown).catch(unknown)
  const attempts = Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  const { pending, failing } = await counts
  return [
    metric('webhook_deliveries_total', 'Attempts to deliver events to webhooks', attempts),
    metric('webhook_pending', 'Deliveries that wait, of active webhooks', pending),
    metric('webhooks_failing', 'Webhooks that fail, or were disabled because they failed', failing),
  ]
}

async function count(port: WebhookStore): Promise<{ pending: number; failing: number }> {
  const webhooks = await port.listWebhooks()
  let pending = 0
  for (const { id, state } of webhooks) {
    if (state === 'active') pending += await port.countPending(id)
    // A synchronous store would not let the server answer requests meanwhile.
    await delay(1)
  }
  return { pending, failing: webhooks.filter(({ failingSince }) => failingSince !== undefined).length }
}
