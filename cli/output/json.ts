/** What stores hold in the wire's names, for `--json`. */
import { keyState } from '../../core/keys/lifecycle.ts'
import { rfc3339 } from '../../core/lib/time.ts'
import type { Key, LimitOverrides, Partner } from '../../core/model.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import type { Signup } from '../../core/ports/signups.ts'

/** Partner, as `--json` shows it. */
export function partnerJson(partner: Partner): Record<string, unknown> {
  return pickMembers(partner, ['slug', 'name', 'state', 'modules', 'limits', 'createdAt'])
}

/** Key, as `--json` shows it: what is at rest, but for the digest. */
export function keyJson(key: Key, now: number): Record<string, unknown> {
  return {
    ...pickMembers(key, ['id', 'partner', 'name', 'environment', 'hint']),
    state: keyState(key, now),
    ...pickMembers(key, ['scopes', 'allow', 'limits', 'createdAt', 'expiresAt']),
    rotation: key.successorId === undefined ? null : pickMembers(key, ['successorId', 'retiresAt']),
    ...pickMembers(key, ['lastUsedAt']),
  }
}

/** Signup, as `--json` and `signups export` show it: all that was sent. */
export function signupJson(signup: Signup): Record<string, unknown> {
  return {
    ...pickMembers(signup, [
      'id',
      'partner',
      'keyId',
      'environment',
      'createdAt',
      'email',
      'name',
      'company',
    ]),
    ...pickMembers(signup, ['country', 'plan', 'profile', 'locale', 'message', 'consentAt', 'metadata']),
  }
}

/** Entry of the audit trail, as `--json` shows it. */
export function auditEntryJson(entry: AuditEntry): Record<string, unknown> {
  return {
    ...pickMembers(entry, ['sequence', 'id']),
    occurred_at: instantJson(entry.at),
    ...pickMembers(entry, ['actor', 'type', 'partner', 'keyId', 'subject']),
    before: auditStateJson(entry.before),
    after: auditStateJson(entry.after),
    seal: entry.hash,
  }
}

/** These members of a record, in this order; those that are not set are null. */
function pickMembers<T extends object>(
  record: T,
  names: readonly (keyof T & string)[],
): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => jsonMember(name, record[name] ?? null)))
}

/** A state that the audit trail kept. What is no JSON object any more is shown as it stands there. */
export function auditStateJson(text: string | undefined): Record<string, unknown> | string | null {
  if (text === undefined) return null
  const state = parseObject(text)
  if (state === undefined) return text
  const members = Object.entries(state).filter(([name]) => name !== 'digestHash')
  return Object.fromEntries(members.map(([name, value]) => jsonMember(name, value)))
}

/** A member of what a store holds, by its name and value on the wire. */
function jsonMember(name: string, value: unknown): [name: string, value: unknown] {
  const wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  if (name === 'hint') return [wireName, `…${value}`]
  if (name === 'limits' && isLimits(value)) return [wireName, limitsJson(value)]
  return [wireName, name.endsWith('At') ? instantJson(value) : value]
}

/** An instant that the audit trail kept: somebody may have written there what is none, and it is shown as it stands. */
function instantJson(value: unknown): unknown {
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

function limitsJson(limits: LimitOverrides): object[] {
  return Object.entries(limits).map(([policy, { quota, windowSeconds }]) => ({
    policy,
    quota,
    window_seconds: windowSeconds,
  }))
}
