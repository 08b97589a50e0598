import { keyState } from '../../core/keys/state.ts'
import type { Key, LimitOverrides } from '../../core/model.ts'

/** `2026-11-20 05:42 UTC`, or `never`. */
export function readableTime(ms: number | undefined): string {
  return ms === undefined ? 'never' : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** When a key stops working: at its expiry or at the end of its overlap, whichever is first; `undefined` for never. */
export function keyEnd({ expiresAt, retiresAt }: Key): number | undefined {
  const end = Math.min(expiresAt ?? Infinity, retiresAt ?? Infinity)
  return end === Infinity ? undefined : end
}

/** A partner's or key's own limits as they are written on the command line. */
export function limitsText(limits: LimitOverrides): string {
  const own = Object.entries(limits).map(([policy, { quota, windowSeconds }]) =>
    quota === 0 ? `${policy}=0` : `${policy}=${quota}/${windowSeconds}`
  )
  return own.join(' ') || "the service's"
}

/** A key in names and values, for people. */
export function keyDetails(key: Key, now: number): (readonly [name: string, value: string])[] {
  const rotation = key.successorId === undefined
    ? []
    : [['replaced by', `${key.successorId}, until ${readableTime(key.retiresAt)}`] as const]
  return [
    ['id', key.id],
    ['partner', key.partner],
    ['name', key.name],
    ['kind', `${key.environment}, ends in ${key.hint}`],
    ['state', keyState(key, now)],
    ['scopes', key.scopes.join(' ') || 'none'],
    ['allowed from', key.allow.join(' ') || 'anywhere'],
    ['limits', limitsText(key.limits)],
    ['created', readableTime(key.createdAt)],
    ['expires', readableTime(key.expiresAt)],
    ...rotation,
    ['last used', readableTime(key.lastUsedAt)],
  ]
}
