/** What stores hold in the wire's names, for `--json`. */
import type { AuditEntry } from '../../core/audit/entry.ts'
import { optionalRfc3339, rfc3339 } from '../../core/http/time.ts'
import { type KeyState, keyState } from '../../core/keys/state.ts'
import type { Key, LimitOverrides, Partner } from '../../core/model.ts'
import type { Signup } from '../../core/signups/signup.ts'

/** Partner, as `--json` shows it. */
export function partnerWire(partner: Partner): Record<string, unknown> {
  return {
    slug: partner.slug,
    name: partner.name,
    state: partner.state,
    modules: partner.modules,
    limits: limitsWire(partner.limits),
    created_at: rfc3339(partner.createdAt),
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
    created_at: rfc3339(key.createdAt),
    expires_at: optionalRfc3339(key.expiresAt),
    rotation: key.successorId === undefined
      ? null
      : { successor_id: key.successorId, retires_at: optionalRfc3339(key.retiresAt) },
    last_used_at: optionalRfc3339(key.lastUsedAt),
  }
}

/** Signup, as `--json` and `signups export` show it: all that was sent. */
export function signupWire(signup: Signup): Record<string, unknown> {
  return {
    id: signup.id,
    partner: signup.partner,
    key_id: signup.keyId,
    environment: signup.environment,
    created_at: rfc3339(signup.createdAt),
    email: signup.email,
    name: signup.name,
    company: signup.company ?? null,
    country: signup.country ?? null,
    plan: signup.plan ?? null,
    profile: signup.profile ?? null,
    locale: signup.locale ?? null,
    message: signup.message ?? null,
    consent_at: optionalRfc3339(signup.consentAt),
    metadata: signup.metadata,
  }
}

/** Entry of the audit trail, as `--json` shows it. */
export function auditWire(entry: AuditEntry): Record<string, unknown> {
  return {
    sequence: entry.sequence,
    id: entry.id,
    occurred_at: recordedInstant(entry.at),
    actor: entry.actor,
    type: entry.type,
    partner: entry.partner ?? null,
    key_id: entry.keyId ?? null,
    subject: entry.subject ?? null,
    before: stateWire(entry.before),
    after: stateWire(entry.after),
    seal: entry.seal,
  }
}

/** A state that the audit trail kept. What is no JSON object any more is shown as it stands there. */
export function stateWire(text: string | undefined): Record<string, unknown> | string | null {
  if (text === undefined) return null
  const state = parseObject(text)
  if (state === undefined) return text
  return Object.fromEntries(
    Object.entries(state).filter(([name]) => name !== 'digestHash').map(([name, value]) => {
      const wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      if (name === 'hint') return [wireName, `…${value}`]
      if (name === 'limits' && isLimits(value)) return [wireName, limitsWire(value)]
      return [wireName, name.endsWith('At') ? recordedInstant(value) : value]
    }),
  )
}

/** An instant that the audit trail kept: somebody may have written there what is none, and it is shown as it stands. */
function recordedInstant(value: unknown): unknown {
  return Number.isInteger(value) && !Number.isNaN(new Date(value as number).getTime())
    ? rfc3339(value as number)
    : value
}

/** A limit that a partner or key carries, as `--json` shows it. */
interface LimitWire {
  readonly policy: string
  readonly quota: number
  readonly window_seconds: number
}

function isLimits(value: unknown): value is LimitOverrides {
  return typeof value === 'object' && value !== null &&
    Object.values(value).every((limit) => typeof limit === 'object' && limit !== null)
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function limitsWire(limits: LimitOverrides): LimitWire[] {
  return Object.entries(limits).map(([policy, { quota, windowSeconds }]) => ({
    policy,
    quota,
    window_seconds: windowSeconds,
  }))
}
