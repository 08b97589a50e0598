import { deriveId } from '../lib/ids.ts'
import { createLruCache } from '../lib/lru.ts'
import { rfc3339 } from '../lib/time.ts'
import type { QuotaObserver } from '../limits/limiter.ts'
import { MAX_QUOTA_SECONDS } from '../limits/policies.ts'
import type { Partner } from '../model.ts'
import type { Store } from '../ports/store.ts'

/** The part of a quota that is left when `quota.warning` is due. */
const warningShare = 0.2
const retryMs = 10_000

export function quotaData({ slug, name, contact, tags }: Partner, count: object) {
  return { slug, name, contact: contact ?? null, tags, ...count }
}

/**
 * Enqueues `quota.warning` and `quota.reached`, each once for a window and a quota, however many servers count it.
 * Takes no time of the request; what fails is attempted again with a request that counts 10 seconds later.
 */
export function createQuotaNotifier(
  store: Pick<Store, 'webhooks' | 'quotas' | 'findPartner' | 'sha256'>,
): QuotaObserver {
  const { webhooks, quotas, sha256 } = store
  /** The pauses between events, by quota and level, milliseconds since the epoch. The clock may go back before one. */
  const pauses = createLruCache<{ readonly from: number; readonly until: number }>(10_000)

  return ({ policy: { name: policy, quota }, subject }, slug, { remaining, resetSeconds, term }, at) => {
    if (remaining > quota * warningShare) return
    const type = remaining === 0 ? 'quota.reached' : 'quota.warning'
    const level = `${type} ${policy} ${subject} ${quota}`
    const pause = pauses.get(level)
    if (pause !== undefined && at >= pause.from && at < pause.until) return
    pauses.set(level, { from: at, until: at + retryMs })
    // To the second, as the time until then is.
    const resetsAt = Math.floor(at / 1000 + resetSeconds) * 1000
    const enqueue = async () => {
      // Loaded with the first event, and after the response, for which a synchronous store would wait.
      const { createEvent } = await import('./events.ts')
      const partner = (await store.findPartner(slug))!
      const count = { policy, quota, used: quota - remaining, resets_at: rfc3339(resetsAt) }
      const id = deriveId('msg_', sha256(`${level} ${policy === 'month' ? '' : term || at}`))
      const event = createEvent({ id, type, partner: slug, createdAt: at }, quotaData(partner, count))
      // A delivery, by which a repeated event is known, is kept for less than a month.
      const sent = { policy, subject: id, quota: 1, windowSeconds: MAX_QUOTA_SECONDS }
      const { remaining: unsent } = await quotas.leaseQuota({ ...sent, wanted: 0 })
      if (unsent > 0) await webhooks.enqueue([event])
      await quotas.leaseQuota({ ...sent, wanted: 1 })
      pauses.set(level, { from: at, until: resetsAt })
    }
    void enqueue().catch(() => undefined)
  }
}
