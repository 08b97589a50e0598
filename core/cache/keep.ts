import { after } from '../after.ts'
import type { Call } from '../call.ts'
import type { Timetable } from '../content/timetable.ts'
import { encode } from '../http/content.ts'
import type { Representation } from '../http/representation.ts'
import type { Grant } from '../policy/decide.ts'
import type { KeyedRoute } from '../routes/route.ts'
import type { Replies } from './replies.ts'

/** Keeps a reply for as long as it holds good. Nobody waits for that, or minds when it can't be done. */
export type KeepReply = (call: Call, route: KeyedRoute, grant: Grant, made: Representation) => void

/** Keeps what is asked for more than once. */
export function createKeeper(replies: Replies, timetable: Timetable): KeepReply {
  return (call, route, grant, made) => {
    const { target } = call.exchange
    if (route.dependsOn === 'nothing' || !replies.isWorthKeeping(target)) return
    const { path, slug, revision: { content } } = call
    const facts = route.dependsOn === 'everything' ? call.revision.facts : undefined
    const partner = grant.partner.slug
    const keepUntil = (goodUntil: number): void => {
      const body = typeof made.body === 'string' ? encode(made.body) : made.body
      replies.keep(target, { ...made, body, route, path, slug, partner, content, facts, goodUntil })
    }
    try {
      const kept = after(timetable.nextChangeAt(partner, content, grant.now), keepUntil)
      if (kept instanceof Promise) kept.catch(() => undefined)
    } catch {
      // The store has answered what was asked; the next who asks finds out.
    }
  }
}
