/** The active webhooks of a process, attempts to deliver to them, and what follows from the outcomes. */
import { clockOf } from '../../core/lib/clock.ts'
import { ignoreFailure } from '../../core/lib/promise.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Delivery, DeliveryResult, Webhook, WebhookStore } from '../../core/ports/webhooks.ts'
import type { Attempt, WebhookSender } from './sender.ts'

/** Milliseconds from each failed attempt to the next, as in Standard Webhooks: ten attempts in three days. */
const retryDelaysMs = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1_000)
const disableAfterMs = 5 * MS_PER_DAY
const slowMs = 1_000
/** Connections that became ready after the webhook had to be looked up again. */
const maxLateConnections = 3
const slowStore = 'Reading the webhooks takes longer than --max-staleness, so they may be disabled'
/** A webhook is failing after so many failures in a row. */
export const FAILURES_IN_A_ROW = 3
/** A lower staleness would leave no time to read them. */
const minStalenessMs = 500

/** An active webhook, and how it responds. */
export interface Target {
  webhook: Webhook
  failures: number
  /** Leased deliveries, or those that are being leased. */
  attempts: number
  isFast: boolean
  /** When `Retry-After` ends, on `performance.now()`. */
  pausedUntil: number
}

/** The active webhooks, as this process last read them. */
interface ActiveWebhooks {
  /** The webhooks to call, by id. */
  readonly targets: Map<string, Target>
  /** Reads them again. */
  refresh(): Promise<void>
  /** Whether the webhook was active within the staleness. */
  mayBeCalled(target: Target): boolean
}

/** Creates the list. After its end, a webhook is called for at most `maxStalenessMs`, or 500 ms if that is longer. */
function createActiveWebhooks(port: WebhookStore, maxStalenessMs: number): ActiveWebhooks {
  const targets = new Map<string, Target>()
  let reading: Promise<void> | undefined
  let readAt = -Infinity

  async function read(startedAt: number): Promise<void> {
    const active = (await port.listWebhooks()).filter(({ state }) => state === 'active')
    for (const id of targets.keys()) if (!active.some((webhook) => webhook.id === id)) targets.delete(id)
    readAt = startedAt
    for (const webhook of active) {
      const failures = webhook.failingSince === undefined ? 0 : FAILURES_IN_A_ROW
      const target = targets.get(webhook.id) ?? { failures, attempts: 0, isFast: false, pausedUntil: 0 }
      targets.set(webhook.id, Object.assign(target, { webhook }))
    }
  }

  return {
    targets,
    refresh: () => reading ??= read(performance.now()).finally(() => reading = undefined),
    mayBeCalled(target) {
      const isFresh = performance.now() - readAt < Math.max(minStalenessMs, maxStalenessMs)
      return isFresh && targets.get(target.webhook.id) === target
    },
  }
}

/** The state that all deliveries of a process share: its active webhooks, as they were last read, and its log. */
export interface DeliveryContext extends ActiveWebhooks {
  readonly port: WebhookStore
  /** Attempts since the start. */
  readonly outcomes: Record<'delivered' | 'retried' | 'failed', number>
  log(level: LogEvent['level'], event: LogEvent['event'], fields: Partial<LogEvent>): void
  /** Milliseconds since the epoch by the store's clock. */
  now(): number
  /** Whether nothing more is written to the store. */
  isClosed: boolean
  /** Logs the first of several failures in a row. */
  storeFailed(error: unknown): void
  storeResponded(): void
  /** Logs each reason once. */
  cannotDeliver(error: string, webhook?: Partial<LogEvent>): void
}

export function createDeliveryContext(
  store: Store,
  maxStalenessMs: number,
  write: (event: LogEvent) => void,
): DeliveryContext {
  const port = store.webhooks
  const logged = new Set<string>()
  let isStoreFailing = false

  function log(level: LogEvent['level'], event: LogEvent['event'], fields: Partial<LogEvent>): void {
    ignoreFailure(() => write({ time: new Date().toISOString(), level, event, ...fields }))
  }

  return {
    port,
    ...createActiveWebhooks(port, maxStalenessMs),
    outcomes: { delivered: 0, retried: 0, failed: 0 },
    log,
    now: clockOf(store).now,
    isClosed: false,
    storeFailed(error) {
      if (!isStoreFailing) log('error', 'write_failed', { error: String(error) })
      isStoreFailing = true
    },
    storeResponded() {
      isStoreFailing = false
    },
    cannotDeliver(error, webhook = {}) {
      if (!logged.has(error)) log('error', 'webhooks_unavailable', { ...webhook, error })
      logged.add(error)
    },
  }
}

/** @returns `undefined` if nothing was sent: the delivery is due again when its lease ends. */
export async function attemptDelivery(
  context: DeliveryContext,
  target: Target,
  { send }: WebhookSender,
  secrets: readonly string[],
  { id, attempts, payload }: Delivery,
): Promise<DeliveryResult | undefined> {
  const { targets, refresh, storeFailed, cannotDeliver } = context
  const startedAt = performance.now()
  const mayBeCalled = () => context.mayBeCalled(target)
  let attempt: Attempt | undefined
  for (let late = 0; attempt === undefined; late++) {
    if (!mayBeCalled()) await refresh().catch(storeFailed)
    if (!mayBeCalled()) {
      if (targets.has(target.webhook.id)) cannotDeliver(slowStore)
      return undefined
    }
    attempt = late < maxLateConnections
      ? await send(target.webhook.url, secrets, id, payload, mayBeCalled)
      : { error: 'connecting takes too long' }
  }
  const { status, error, retryAfterMs = 0 } = attempt
  target.isFast = performance.now() - startedAt < slowMs
  target.pausedUntil = Math.max(target.pausedUntil, performance.now() + retryAfterMs)
  if (!context.isClosed) await recordOutcome(context, target, attempt).catch(storeFailed)
  const delayMs = status === 410 ? undefined : retryDelaysMs[attempts]
  // Jitter of a tenth, so that deliveries that failed together are spread.
  const retryMs = Math.max(retryAfterMs, Math.round((delayMs ?? 0) * (1 + Math.random() / 10)))
  const failedState = delayMs === undefined ? 'failed' : 'pending'
  const state = error === undefined ? 'delivered' : failedState
  return { webhook: target.webhook.id, id, state, retryMs, lastStatus: status, lastError: error }
}

async function recordOutcome(
  { port, targets, now, log }: DeliveryContext,
  target: Target,
  { status, error }: Attempt,
): Promise<void> {
  const { webhook: { id }, failures } = target
  target.failures = error === undefined ? 0 : failures + 1
  if (error === undefined) {
    if (failures >= FAILURES_IN_A_ROW) log('info', 'webhook_recovered', { webhook: id })
    return
  }
  if (target.failures === FAILURES_IN_A_ROW) log('warn', 'webhook_failing', { webhook: id, error })
  const isDead = ({ state, failingSince = Infinity }: Webhook) =>
    state === 'active' && (status === 410 || now() - failingSince >= disableAfterMs)
  if (!targets.has(id) || !isDead(target.webhook)) return
  const context = { actor: 'partner-api', at: now() }
  const changed = await port.changeWebhook(
    id,
    'webhook.disabled',
    context,
    (current) => current && isDead(current) ? { ...current, state: 'disabled' } : current,
  )
  if (changed?.state !== 'disabled' || !targets.delete(id)) return
  log('warn', 'webhook_disabled', { webhook: id, error })
}
