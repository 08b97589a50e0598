import { createClock } from '../../core/lib/clock.ts'
import { completesWithin, delay } from '../../core/lib/promise.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Delivery, DeliveryResult, Webhook } from '../../core/ports/webhooks.ts'
import { enqueueExpiring } from '../../core/webhooks/events.ts'
import { openSecrets, type WebhookKey } from './secrets.ts'
import type { WebhookSender } from './sender.ts'

/** How a process delivers. */
export interface WebhookOptions {
  /** Opens the secrets of webhooks. Without it nothing is delivered, and active webhooks are logged. */
  readonly key?: WebhookKey | undefined
  /** Whether to deliver to private addresses and by http://, too. */
  readonly allowPrivate?: boolean | undefined
  /** Gets the events that begin with `webhook`, and `write_failed`. */
  readonly log?: ((event: LogEvent) => void) | undefined
}

/** The deliveries of one process. */
export interface RunningWebhooks {
  /** Attempts since the start; `failed` ones are not repeated. */
  readonly outcomes: Readonly<Record<'delivered' | 'retried' | 'failed', number>>
  /**
   * Starts no more attempts, and waits for those that have begun.
   * @param drainMs Milliseconds after which they are given up. They are repeated when their leases end.
   */
  close(drainMs?: number): Promise<void>
}

/** Milliseconds from each failed attempt to the next, as in Standard Webhooks: ten attempts in three days. */
const retryDelaysMs = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1_000)
const disableAfterMs = 5 * MS_PER_DAY
/** Longer than an attempt and the write of its outcome. */
const leaseMs = 30_000
/** A webhook that is failing is attempted no longer than this, so that an attempt can end before the lease. */
const attemptInTurnMs = 10_000
const [pollEveryMs, listEveryMs, maintainEveryMs] = [500, 5_000, 3_600_000]
/** Deliveries of a lease, which are attempted at once unless the webhook is failing; leases of a webhook, and attempts at once. */
const leases = { size: 25, perWebhook: 2, attempts: 300 }
/** A webhook is failing after so many failures in a row. If all are, 100 at most, one that responds is not delayed. */
const failuresInARow = 3

interface Target {
  webhook: Webhook
  secrets: readonly string[]
  failures: number
  leases: number
  /** When `Retry-After` ends. */
  pausedUntil: number
}

/** Delivers the events of a store to its active webhooks, together with other processes, until it is closed. */
export function startWebhooks(
  store: Store,
  { key, allowPrivate = false, ...options }: WebhookOptions,
): RunningWebhooks {
  const port = store.webhooks!
  const clock = createClock(() => store.clock?.())
  const outcomes = { delivered: 0, retried: 0, failed: 0 }
  const targets = new Map<string, Target>()
  const working = new Set<Promise<void>>()
  const logged = new Set<string>()
  const closing = new AbortController()
  let sender: WebhookSender | undefined
  let [isClosed, isStoreFailing, sending, listAt, maintainAt] = [false, false, 0, 0, 0]

  function log(level: LogEvent['level'], event: LogEvent['event'], fields: Partial<LogEvent>): void {
    options.log?.({ time: new Date().toISOString(), level, event, ...fields })
  }

  function storeFailed(error: unknown): void {
    if (!isStoreFailing) log('error', 'write_failed', { error: String(error) })
    isStoreFailing = true
  }

  function cannotDeliver(error: string, webhook: Partial<LogEvent> = {}): void {
    if (!logged.has(error)) log('error', 'webhooks_unavailable', { ...webhook, error })
    logged.add(error)
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        if (performance.now() >= listAt) await list()
        const due = targets.size === 0 ? [] : await port.dueWebhooks()
        for (const id of due) start(id)
        isStoreFailing = false
      } catch (error) {
        storeFailed(error)
      }
      await delay(pollEveryMs, closing.signal).catch(() => {})
    }
  }

  /** Reads which webhooks are active, and opens their secrets. */
  async function list(): Promise<void> {
    const active = (await port.listWebhooks()).filter(({ state }) => state === 'active')
    listAt = performance.now() + listEveryMs
    for (const id of targets.keys()) if (!active.some((webhook) => webhook.id === id)) targets.delete(id)
    if (performance.now() >= maintainAt) {
      maintainAt = performance.now() + maintainEveryMs
      maintain().catch((error) => closing.signal.aborted || storeFailed(error))
    }
    if (active.length === 0) return
    if (key === undefined) {
      return cannotDeliver('There is no key for the secrets of webhooks: --webhook-key-file')
    }
    // Loaded with undici, which a service without webhooks does not need.
    sender ??= (await import('./sender.ts')).createWebhookSender(allowPrivate)
    for (const webhook of active) {
      const { id, failingSince } = webhook
      try {
        const secrets = await openSecrets(key, webhook, clock.now())
        const failures = failingSince === undefined ? 0 : failuresInARow
        const target = targets.get(id) ?? { failures, leases: 0, pausedUntil: 0 }
        targets.set(id, Object.assign(target, { webhook, secrets }))
      } catch (error) {
        targets.delete(id)
        cannotDeliver((error as Error).message, { webhook: id })
      }
    }
  }

  /** Beside the deliveries: a large store takes a while. */
  async function maintain(): Promise<void> {
    while (await port.pruneDeliveries() > 0) await delay(1, closing.signal)
    await enqueueExpiring(store, clock.now(), closing.signal)
  }

  /** Works through the due deliveries of a webhook, independently of other webhooks. */
  function start(id: string): void {
    const target = targets.get(id)
    if (target === undefined || clock.now() < target.pausedUntil) return
    const isFailing = target.failures >= failuresInARow
    const attempts = isFailing ? 1 : leases.size
    if (target.leases >= (isFailing ? 1 : leases.perWebhook) || sending + attempts > leases.attempts) return
    target.leases++
    sending += attempts
    const work = deliver(target, isFailing).catch(storeFailed).then((hasMore) => {
      target.leases--
      sending -= attempts
      working.delete(work)
      // One that fails is attempted again by the next poll: it must not keep the store busy.
      const goesOn = hasMore && target.failures < failuresInARow && !closing.signal.aborted
      if (goesOn && targets.get(id) === target) start(id)
    })
    working.add(work)
  }

  /** @returns Whether more may be due. */
  async function deliver(target: Target, isFailing: boolean): Promise<boolean> {
    const deliveries = await port.leaseDeliveries(target.webhook.id, leases.size, leaseMs)
    const results = isFailing
      ? await attemptInTurn(target, deliveries)
      : await Promise.all(deliveries.map((delivery) => attempt(target, delivery)))
    // The lease ends by itself.
    while (!isClosed) {
      try {
        await port.settleDeliveries(results)
        for (const { state } of results) outcomes[state === 'pending' ? 'retried' : state]++
        break
      } catch (error) {
        storeFailed(error)
        await delay(1_000)
      }
    }
    return deliveries.length === leases.size
  }

  /** Those that are left are due again when the lease ends. */
  async function attemptInTurn(target: Target, deliveries: readonly Delivery[]): Promise<DeliveryResult[]> {
    const results: DeliveryResult[] = []
    const end = performance.now() + attemptInTurnMs
    for (const delivery of deliveries) {
      if (closing.signal.aborted || performance.now() > end || clock.now() < target.pausedUntil) break
      results.push(await attempt(target, delivery))
    }
    return results
  }

  async function attempt(target: Target, { id, attempts, payload }: Delivery): Promise<DeliveryResult> {
    const { webhook, secrets } = target
    const { status, error, retryAfterMs = 0 } = await sender!.send(webhook.url, secrets, id, payload)
    target.pausedUntil = Math.max(target.pausedUntil, clock.now() + retryAfterMs)
    if (!isClosed) await recordOutcome(target, status, error)
    const delayMs = status === 410 ? undefined : retryDelaysMs[attempts]
    // Jitter of a tenth, so that deliveries that failed together are spread.
    const retryMs = Math.max(retryAfterMs, Math.round((delayMs ?? 0) * (1 + Math.random() / 10)))
    const state = error === undefined ? 'delivered' : delayMs === undefined ? 'failed' : 'pending'
    return { webhook: webhook.id, id, state, retryMs, lastStatus: status, lastError: error }
  }

  async function recordOutcome(target: Target, status: number | undefined, error: string | undefined) {
    const { webhook: { id }, failures } = target
    target.failures = error === undefined ? 0 : failures + 1
    if (error === undefined) {
      if (failures >= failuresInARow) log('info', 'webhook_recovered', { webhook: id })
      return
    }
    if (target.failures === failuresInARow) log('warn', 'webhook_failing', { webhook: id, error })
    const isDead = ({ state, failingSince = Infinity }: Webhook) =>
      state === 'active' && (status === 410 || clock.now() - failingSince >= disableAfterMs)
    if (!targets.has(id) || !isDead(target.webhook)) return
    const context = { actor: 'partner-api', at: clock.now() }
    const changed = await port.changeWebhook(
      ...[id, 'webhook.disabled', context] as const,
      (current) => current && isDead(current) ? { ...current, state: 'disabled' } : current,
    )
    if (changed?.state !== 'disabled' || !targets.delete(id)) return
    log('warn', 'webhook_disabled', { webhook: id, error })
  }

  const running = run()
  return {
    outcomes,
    async close(drainMs = 7_000) {
      closing.abort()
      await completesWithin(drainMs, running.then(() => Promise.all(working)))
      isClosed = true
      await sender?.close()
    },
  }
}
