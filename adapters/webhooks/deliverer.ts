/**
 * Delivers the events of a store to its webhooks, and administers these.
 *
 * @module
 */
import { assertInteger, assertOptions, assertStore, MAX_TIMER_MS } from '../../core/lib/options.ts'
import { completesWithin, delay } from '../../core/lib/promise.ts'
import { type LogEvent, logToConsole } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import type { DeliveryResult } from '../../core/ports/webhooks.ts'
import { enqueueExpiring } from '../../core/webhooks/events.ts'
import {
  createWebhookAdministration,
  type NewWebhook,
  type WebhookAdministration,
  type WebhookAdministrationOptions,
  type WebhookUpdate,
  type WebhookWithSecret,
} from './administration.ts'
import {
  attemptDelivery,
  createDeliveryContext,
  type DeliveryContext,
  FAILURES_IN_A_ROW,
  type Target,
} from './attempts.ts'
import { assertWebhookKey, importWebhookKey, openSecrets, type WebhookKey } from './secrets.ts'
import type { WebhookSender } from './sender.ts'

export { createWebhookAdministration, importWebhookKey }
export type {
  LogEvent,
  NewWebhook,
  Store,
  WebhookAdministration,
  WebhookAdministrationOptions,
  WebhookKey,
  WebhookUpdate,
  WebhookWithSecret,
}

/** How a process delivers. */
export interface WebhookOptions {
  /** Opens the secrets of webhooks. Without it nothing is delivered, and active webhooks are logged. */
  readonly key?: WebhookKey | undefined
  /** Whether to deliver to private addresses and by http://, too. */
  readonly allowPrivate?: boolean | undefined
  /**
   * Milliseconds, 500 or more, default 1,000: no webhook is called later than this after it was disabled or removed.
   */
  readonly maxStalenessMs?: number | undefined
  /**
   * Gets the events that begin with `webhook`, and `write_failed`. Without it, those with the level `error` are
   * lines of JSON on `console.error`.
   */
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

/** The lease of a delivery, in milliseconds: longer than an attempt and the write of its outcome. */
const leaseMs = 30_000
const pollEveryMs = 500
const listEveryMs = 5_000
const maintainEveryMs = 3_600_000
/** Deliveries of a lease, which are attempted at once. */
const leaseSize = 25
/** Attempts at once: of a webhook, by how it responds, and of all. The first few of each webhook wait for no other. */
const attemptsAtOnce = { failing: 1, slow: 3, fast: 50, all: 300 }

/** Delivers the events of a store to its active webhooks, together with other processes, until it is closed. */
export function startWebhooks(
  store: Store,
  options: WebhookOptions,
): RunningWebhooks {
  assertOptions('startWebhooks', options, {
    key: 'an object',
    allowPrivate: 'true or false',
    maxStalenessMs: 'a number',
    log: 'a function',
  })
  const { key, allowPrivate = false, maxStalenessMs = 1_000, log: write = logToConsole } = options
  assertStore('startWebhooks', store)
  assertWebhookKey('startWebhooks', key)
  assertInteger('maxStalenessMs', maxStalenessMs, 0, MAX_TIMER_MS)
  const context = createDeliveryContext(store, maxStalenessMs, write)
  const { port, targets, log, storeFailed, storeResponded, cannotDeliver } = context
  const closing = new AbortController()
  // Loaded with undici, which a service without webhooks does not need.
  let loading: Promise<WebhookSender> | undefined
  const loadSender = () =>
    loading ??= import('./sender.ts').then(({ createWebhookSender }) => createWebhookSender(allowPrivate))
  const leases = createLeases(context, key, loadSender, closing.signal)
  let maintainAt = 0

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      let isIdle = targets.size === 0
      try {
        await context.refresh()
        isIdle = targets.size === 0 || key === undefined
        if (targets.size > 0 && key === undefined) {
          cannotDeliver('There is no key for the secrets of webhooks: pass key, or --webhook-key-file')
        }
        if (performance.now() >= maintainAt) {
          maintainAt = performance.now() + maintainEveryMs
          maintain().catch((error) => {
            if (!closing.signal.aborted) storeFailed(error)
          })
        }
        for (const id of isIdle ? [] : await port.dueWebhooks()) leases.start(id)
        storeResponded()
      } catch (error) {
        storeFailed(error)
      }
      await delay(isIdle ? listEveryMs : pollEveryMs, closing.signal).catch(() => {})
    }
  }

  /** Beside the deliveries: a large store takes a while. */
  async function maintain(): Promise<void> {
    let pruned = await port.pruneDeliveries()
    while (pruned.length > 0) {
      const pending = Map.groupBy(pruned.filter(({ state }) => state === 'pending'), ({ webhook }) => webhook)
      for (const [webhook, { length: deliveries }] of pending) {
        log('warn', 'webhook_deliveries_removed', { webhook, deliveries })
      }
      await delay(1, closing.signal)
      pruned = await port.pruneDeliveries()
    }
    await enqueueExpiring(store, context.now(), closing.signal)
  }

  const running = run()
  return {
    outcomes: context.outcomes,
    async close(drainMs = 7_000) {
      closing.abort()
      await completesWithin(drainMs, running.then(() => Promise.all(leases.working)))
      context.isClosed = true
      await (await loading)?.close()
    },
  }
}

/** Leases due deliveries of each webhook, independently of other webhooks, and records their outcomes. */
function createLeases(
  context: DeliveryContext,
  key: WebhookKey | undefined,
  loadSender: () => Promise<WebhookSender>,
  closing: AbortSignal,
) {
  const { port, targets, storeFailed, cannotDeliver } = context
  const working = new Set<Promise<void>>()
  let sending = 0

  /** Works through the due deliveries of a webhook. */
  function start(id: string): void {
    const target = targets.get(id)
    if (target === undefined || performance.now() < target.pausedUntil) return
    const size = leaseSizeOf(target, sending)
    if (size <= 0) return
    const work = deliver(target, size).catch(storeFailed).then((hasMore) => {
      working.delete(work)
      // One that fails is attempted again by the next poll: it must not keep the store busy.
      const continues = hasMore && target.failures < FAILURES_IN_A_ROW && !closing.aborted
      if (continues && targets.get(id) === target) start(id)
    })
    working.add(work)
  }

  /** @param size Deliveries to lease at most. @returns Whether more may be due. */
  async function deliver(target: Target, size: number): Promise<boolean> {
    const { webhook } = target
    let taken = 0
    const take = (count: number) => {
      target.attempts += count - taken
      sending += count - taken
      taken = count
    }
    take(size)
    try {
      const secrets = await openSecrets(key!, webhook, context.now())
        .catch((error: Error) => cannotDeliver(error.message, { webhook: webhook.id }))
      if (!secrets) return false
      const sender = await loadSender()
      const deliveries = await port.leaseDeliveries(webhook.id, size, leaseMs)
      take(deliveries.length)
      const results = await Promise.all(
        deliveries.map((delivery) => attemptDelivery(context, target, sender, secrets, delivery)),
      )
      await writeResults(context, results.filter((result) => result !== undefined))
      return deliveries.length === size
    } finally {
      take(0)
    }
  }

  return { start, working }
}

async function writeResults(context: DeliveryContext, results: readonly DeliveryResult[]): Promise<void> {
  // The lease ends by itself.
  while (!context.isClosed) {
    try {
      await context.port.settleDeliveries(results)
      for (const { state } of results) context.outcomes[state === 'pending' ? 'retried' : state]++
      return
    } catch (error) {
      context.storeFailed(error)
      await delay(1_000)
    }
  }
}

function leaseSizeOf({ attempts, failures, isFast }: Target, sending: number): number {
  const { failing, slow, fast, all } = attemptsAtOnce
  const mostOfResponding = isFast ? fast : slow
  const most = failures >= FAILURES_IN_A_ROW ? failing : mostOfResponding
  return Math.min(leaseSize, most - attempts, Math.max(all - sending, slow - attempts))
}
