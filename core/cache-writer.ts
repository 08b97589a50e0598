import type { ExpirySchedule, ResponseCache } from './cache/response-cache.ts'
import { type CachedBody, encode } from './http/message.ts'
import { andThen } from './lib/promise.ts'
import type { Grant } from './policy/decide.ts'
import type { RequestContext } from './request-context.ts'
import type { KeyedRoute } from './routes/route.ts'

/** Keeps a reply for as long as it holds good. Nobody waits for that, or minds when it can't be done. */
export type CacheWriter = (call: RequestContext, route: KeyedRoute, grant: Grant, made: CachedBody) => void

/** Keeps what is asked for more than once. */
export function createCacheWriter(cache: ResponseCache, schedule: ExpirySchedule): CacheWriter {
  return (call, route, grant, made) => {
    const { target } = call.request
    if (route.cacheBy === 'none' || !cache.admit(target)) return
    const { path, slug, revision: { content } } = call
    const facts = route.cacheBy === 'content+partner' ? call.revision.facts : undefined
    const partner = grant.partner.slug
    const cacheUntil = (expiresAt: number): void => {
      const body = typeof made.body === 'string' ? encode(made.body) : made.body
      cache.set(target, { ...made, body, route, path, slug, partner, content, facts, expiresAt })
    }
    try {
      const pending = andThen(schedule.nextChangeAt(partner, content, grant.now), cacheUntil)
      if (pending instanceof Promise) pending.catch(() => undefined)
    } catch {
      // The store has answered what was asked; the next who asks finds out.
    }
  }
}
