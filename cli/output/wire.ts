/** What stores hold in the wire's names, for `--json`. */
import type { AuditEntry } from '../../core/audit/entry.ts'
import { rfc3339 } from '../../core/http/time.ts'
import { keyState } from '../../core/keys/state.ts'
import type { Key, LimitOverrides, Partner } from '../../core/model.ts'
import type { Signup } from '../../core/signups/signup.ts'

/** Partner, as `--json` shows it. */
export function partnerWire(partner: Partner): Record<string, unknown> {
  return membersOf(partner, ['slug', 'name', 'state', 'modules', 'limits', 'createdAt'])
}

/** Key, as `--json` shows it: what is at rest, but for the digest. */
export function keyWire(key: Key, now: number): Record<string, unknown> {
  return {
    ...membersOf(key, ['id', 'partner', 'name', 'environment', 'hint']),
    state: keyState(key, now),
    ...membersOf(key, ['scopes', 'allow', 'limits', 'createdAt', 'expiresAt']),
    rotation: key.successorId === undefined ? null : membersOf(key, ['successorId', 'retiresAt']),
    ...membersOf(key, ['lastUsedAt']),
  }
}

/** Signup, as `--json` and `signups export` show it: all that was sent. */
export function signupWire(signup: Signup): Record<string, unknown> {
  return {
    ...membersOf(signup, ['id', 'partner', 'keyId', 'environment', 'createdAt', 'email', 'name', 'company']),
    ...membersOf(signup, ['country', 'plan', 'profile', 'locale', 'message', 'consentAt', 'metadata']),
  }
}

/** Entry of the audit trail, as `--json` shows it. */
export function auditWire(entry: AuditEntry): Record<string, unknown> {
  return {
    ...membersOf(entry, ['sequence', 'id']),
    occurred_at: recordedInstant(entry.at),
    ...membersOf(entry, ['actor', 'type', 'partner', 'keyId', 'subject']),
    before: stateWire(entry.before),
    after: stateWire(entry.after),
    seal: entry.seal,
  }
}

/** These members of a record, in this order; those that are not set are null. */
function membersOf<T extends object>(
  record: T,
  names: readonly (keyof T & string)[],
): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => memberWire(name, record[name] ?? null)))
}

/** A state that the audit trail kept. What is no JSON object any more is shown as it stands there. */
export function stateWire(text: string | undefined): Record<string, unknown> | string | null {
  if (text === undefined) return null
  const state = parseObject(text)
  if (state === undefined) return text
  const members = Object.entries(state).filter(([name]) => name !== 'digestHash')
  return Object.fromEntries(members.map(([name, value]) => memberWire(name, value)))
}

/** A member of what a store holds, by its name and value on the wire. */
function memberWire(name: string, value: unknown): [name: string, value: unknown] {
  const wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  if (name === 'hint') return [wireName, `…${value}`]
  if (name === 'limits' && isLimits(value)) return [wireName, limitsWire(value)]
  return [wireName, name.endsWith('At') ? recordedInstant(value) : value]
}

/** An instant that the audit trail kept: somebody may have written there what is none, and it is shown as it stands. */
function recordedInstant(value: unknown): unknown {
  return Number.isInteger(value) && !Number.isNaN(new Date(value as number).getTime())
    ? rfc3339(value as number)
    : value
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

function limitsWire(limits: LimitOverrides): object[] {
  return Object.entries(limits).map(([policy, { quota, windowSeconds }]) => ({
    policy,
    quota,
    window_seconds: windowSeconds,
  }))
}
