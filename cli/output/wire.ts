/** Partners and keys in the wire's names, for `--json`. */
import { type KeyState, keyState } from '../../core/keys/state.ts'
import type { Key, LimitOverrides, Partner } from '../../core/model.ts'

/** RFC 3339 in UTC with milliseconds, or `null`. */
export function instant(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}

/** Partner, as `--json` shows it. */
export function partnerWire(partner: Partner): Record<string, unknown> {
  return {
    slug: partner.slug,
    name: partner.name,
    state: partner.state,
    modules: partner.modules,
    limits: limitsWire(partner.limits),
    created_at: instant(partner.createdAt),
  }
}

/** Key, as `--json` shows it: what is at rest, but for the digest. */
export function keyWire(key: Key, now: number): Record<string, unknown> & { readonly state: KeyState } {
  return {
    id: key.id,
    partner: key.partner,
    name: key.name,
    environment: key.environment,
    hint: `…${key.hint}`,
    state: keyState(key, now),
    scopes: key.scopes,
    allow: key.allow,
    limits: limitsWire(key.limits),
    created_at: instant(key.createdAt),
    expires_at: instant(key.expiresAt),
    rotation: key.successorId === undefined
      ? null
      : { successor_id: key.successorId, retires_at: instant(key.retiresAt) },
    last_used_at: instant(key.lastUsedAt),
  }
}

function limitsWire(limits: LimitOverrides): unknown[] {
  return Object.entries(limits).map(([policy, { quota, windowSeconds }]) => ({
    policy,
    quota,
    window_seconds: windowSeconds,
  }))
}
