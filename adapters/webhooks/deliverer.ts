import { createClock } from '../../core/lib/clock.ts'
import { completesWithin, delay, ignoreFailure } from '../../core/lib/promise.ts'
import { MS_PER_DAY } from '../../core/lib/time.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Delivery, DeliveryResult, Webhook } from '../../core/ports/webhooks.ts'
import { enqueueExpiring } from '../../core/webhooks/events.ts'
import { openSecrets, type WebhookKey } from './secrets.ts'
import type { Attempt, WebhookSender } from './sender.ts'

/** How a process delivers. */
export interface WebhookOptions {
  /** Opens the secrets of webhooks. Without it nothing is delivered, and active webhooks are logged. */
  readonly key?: WebhookKey | undefined
  /** Whether to deliver to private addresses and by http://, too. */
  readonly allowPrivate?: boolean | undefined
  /** Milliseconds, 500 or more, default 1,000: no webhook is called later than this after it was disabled or removed. */
  readonly maxStalenessMs?: number | undefined
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
const [pollEveryMs, listEveryMs, maintainEveryMs] = [500, 5_000, 3_600_000]
/** Deliveries of a lease, which are attempted at once. */
const leaseSize = 25
/** Attempts at once: of a webhook, by how it responds, and of all. The first few of each webhook wait for no other. */
const attemptsAtOnce = { failing: 1, slow: 3, fast: 50, all: 300 }
const slowMs = 1_000
/** A webhook is failing after so many failures in a row. */
const failuresInARow = 3
const slowStore = 'Reading the webhooks takes longer than --max-staleness, so they may be disabled'
/** Connections that became ready after the webhook had to be looked up again. */
const maxLateConnections = 3

interface Target {
  webhook: Webhook
  failures: number
  /** Leased deliveries, or those that are being leased. */
  attempts: number
  isFast: boolean
  /** When `Retry-After` ends, on `performance.now()`. */
  pausedUntil: number
}

/** Delivers the events of a store to its active webhooks, together with other processes, until it is closed. */
export function startWebhooks(
  store: Store,
  { key, allowPrivate = false, maxStalenessMs = 1_000, ...options }: WebhookOptions,
): RunningWebhooks {
  const port = store.webhooks!
  const clock = createClock(() => store.clock?.())
  const outcomes = { delivered: 0, retried: 0, failed: 0 }
  const targets = new Map<string, Target>()
  const working = new Set<Promise<void>>()
  const logged = new Set<string>()
  const closing = new AbortController()
  let sender: WebhookSender | undefined
  let listing: Promise<void> | undefined
  let [isClosed, isStoreFailing, sending, listedAt, maintainAt] = [false, false, 0, -Infinity, 0]

  function log(level: LogEvent['level'], event: LogEvent['event'], fields: Partial<LogEvent>): void {
    ignoreFailure(() => options.log?.({ time: new Date().toISOString(), level, event, ...fields }))
  }

  function storeFailed(error: unknown): void {
    if (!isStoreFailing) log('error', 'write_failed', { error: String(error) })
    isStoreFailing = true
  }

  function cannotDeliver(error: string, webhook: Partial<LogEvent> = {}): undefined {
    if (!logged.has(error)) log('error', 'webhooks_unavailable', { ...webhook, error })
    logged.add(error)
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await list()
        if (performance.now() >= maintainAt) {
          maintainAt = performance.now() + maintainEveryMs
          maintain().catch((error) => closing.signal.aborted || storeFailed(error))
        }
        const due = targets.size === 0 ? [] : await port.dueWebhooks()
        for (const id of due) start(id)
        isStoreFailing = false
      } catch (error) {
        storeFailed(error)
      }
      await delay(targets.size === 0 ? listEveryMs : pollEveryMs, closing.signal).catch(() => {})
    }
  }

  /** Reads which webhooks are active. */
  function list(): Promise<void> {
    return listing ??= readActive(performance.now()).finally(() => listing = undefined)
  }

  async function readActive(startedAt: number): Promise<void> {
    const active = (await port.listWebhooks()).filter(({ state }) => state === 'active')
    for (const id of targets.keys()) if (!active.some((webhook) => webhook.id === id)) targets.delete(id)
    listedAt = startedAt
    if (active.length === 0) return
    if (key === undefined) {
      return cannotDeliver('There is no key for the secrets of webhooks: --webhook-key-file')
    }
    // Loaded with undici, which a service without webhooks does not need.
    sender ??= (await import('./sender.ts')).createWebhookSender(allowPrivate)
    for (const webhook of active) {
      const failures = webhook.failingSince === undefined ? 0 : failuresInARow
      const target = targets.get(webhook.id) ?? { failures, attempts: 0, isFast: false, pausedUntil: 0 }
      targets.set(webhook.id, Object.assign(target, { webhook }))
    }
  }

  function mayCall(target: Target): boolean {
    const isFresh = performance.now() - listedAt < Math.max(500, maxStalenessMs)
    return isFresh && targets.get(target.webhook.id) === target
  }

  /** Beside the deliveries: a large store takes a while. */
  async function maintain(): Promise<void> {
    for (let pruned; (pruned = await port.pruneDeliveries()).length > 0; await delay(1, closing.signal)) {
      const pending = Map.groupBy(pruned.filter(({ state }) => state === 'pending'), ({ webhook }) => webhook)
      for (const [webhook, { length: deliveries }] of pending) {
        log('warn', 'webhook_deliveries_removed', { webhook, deliveries })
      }
    }
    await enqueueExpiring(store, clock.now(), closing.signal)
  }

  /** Works through the due deliveries of a webhook, independently of other webhooks. */
  function start(id: string): void {
    const target = targets.get(id)
    if (target === undefined || performance.now() < target.pausedUntil) return
    const { failing, slow, fast, all } = attemptsAtOnce
    const most = target.failures >= failuresInARow ? failing : target.isFast ? fast : slow
    const left = Math.max(all - sending, slow - target.attempts)
    const size = Math.min(leaseSize, most - target.attempts, left)
    if (size <= 0) return
    const work = deliver(target, size).catch(storeFailed).then((hasMore) => {
      working.delete(work)
      // One that fails is attempted again by the next poll: it must not keep the store busy.
      const goesOn = hasMore && target.failures < failuresInARow && !closing.signal.aborted
      if (goesOn && targets.get(id) === target) start(id)
    })
    working.add(work)
  }

  /** @param size Deliveries to lease at most. @returns Whether more may be due. */
  async function deliver(target: Target, size: number): Promise<boolean> {
    let taken = 0
    const take = (count: number) => {
      target.attempts += count - taken
      sending += count - taken
      taken = count
    }
    take(size)
    try {
      const secrets = await openSecrets(key!, target.webhook, clock.now()).catch((error: Error) =>
        cannotDeliver(error.message, { webhook: target.webhook.id })
      )
      if (!secrets) return false
      const deliveries = await port.leaseDeliveries(target.webhook.id, size, leaseMs)
      take(deliveries.length)
      const results = await Promise.all(deliveries.map((delivery) => attempt(target, secrets, delivery)))
      await settle(results.filter((result) => result !== undefined))
      return deliveries.length === size
    } finally {
      take(0)
    }
  }

  async function settle(results: readonly DeliveryResult[]): Promise<void> {
    // The lease ends by itself.
    while (!isClosed) {
      try {
        await port.settleDeliveries(results)
        for (const { state } of results) outcomes[state === 'pending' ? 'retried' : state]++
        return
      } catch (error) {
        storeFailed(error)
        await delay(1_000)
      }
    }
  }

  /** @returns `undefined` if nothing was sent: the delivery is due again when its lease ends. */
  async function attempt(
    target: Target,
    secrets: readonly string[],
    { id, attempts, payload }: Delivery,
  ): Promise<DeliveryResult | undefined> {
    const startedAt = performance.now()
    const isCurrent = () => mayCall(target)
    let sent: Attempt | undefined
    for (let late = 0; sent === undefined; late++) {
      if (!isCurrent()) await list().catch(storeFailed)
      if (!isCurrent()) return targets.has(target.webhook.id) ? cannotDeliver(slowStore) : undefined
      sent = late < maxLateConnections
        ? await sender!.send(target.webhook.url, secrets, id, payload, isCurrent)
        : { status: undefined, error: 'connecting takes too long', retryAfterMs: undefined }
    }
    const { status, error, retryAfterMs = 0 } = sent
    target.isFast = performance.now() - startedAt < slowMs
    target.pausedUntil = Math.max(target.pausedUntil, performance.now() + retryAfterMs)
    if (!isClosed) await recordOutcome(target, status, error).catch(storeFailed)
    const delayMs = status === 410 ? undefined : retryDelaysMs[attempts]
    // Jitter of a tenth, so that deliveries that failed together are spread.
    const retryMs = Math.max(retryAfterMs, Math.round((delayMs ?? 0) * (1 + Math.random() / 10)))
    const state = error === undefined ? 'delivered' : delayMs === undefined ? 'failed' : 'pending'
    return { webhook: target.webhook.id, id, state, retryMs, lastStatus: status, lastError: error }
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
