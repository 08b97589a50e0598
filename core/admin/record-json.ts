/** Records of the store as JSON with the wire's names: for `--json`, and for webhooks. */
import { isObject, parseJson } from '../lib/json.ts'
import { claimState, keyState } from '../keys/lifecycle.ts'
import { toSnakeCase } from '../lib/text.ts'
import { optionalRfc3339, rfc3339 } from '../lib/time.ts'
import type { Key, LimitOverrides, Partner } from '../model.ts'
import type { AuditEntry } from '../ports/audit.ts'
import type { Claim } from '../ports/changes.ts'
import type { Signup } from '../ports/signups.ts'
import { type Delivery, RETENTION_MS, type Webhook } from '../ports/webhooks.ts'
import { rotatedKeyId } from './claim-request.ts'

export function partnerJson(partner: Partner): Record<string, unknown> {
  return pickMembers(partner, [
    'slug',
    'name',
    'state',
    'modules',
    'limits',
    'contact',
    'tags',
    'externalId',
    'note',
    'selfService',
    'createdAt',
  ])
}

/** All of a key but its digest. The overlap of a revoked key has no end: it is over. */
export function keyJson(key: Key, now: number): Record<string, unknown> {
  const { successorId, retiresAt } = key
  return {
    ...pickMembers(key, ['id', 'partner', 'name', 'environment', 'hint']),
    state: keyState(key, now),
    ...pickMembers(key, ['scopes', 'allow', 'limits', 'owner', 'tags', 'createdAt', 'expiresAt']),
    rotation: successorId === undefined ? null : {
      successor_id: successorId,
      retires_at: key.state === 'revoked' ? null : optionalRfc3339(retiresAt),
    },
    ...pickMembers(key, ['lastUsedAt']),
  }
}

export function signupJson(signup: Signup): Record<string, unknown> {
  return pickMembers(signup, [
    'id',
    'partner',
    'keyId',
    'environment',
    'createdAt',
    'email',
    'name',
    'company',
    'country',
    'plan',
    'profile',
    'locale',
    'message',
    'consentAt',
    'metadata',
  ])
}

/** A claim without its digest. */
export function claimJson(claim: Claim, now: number): Record<string, unknown> {
  const rotates = rotatedKeyId(claim) ?? null
  const state = claimState(claim, now)
  const last = pickMembers(claim, ['createdAt', 'expiresAt', 'keyId'])
  return { ...pickMembers(claim, ['id', 'partner', 'name']), rotates, state, ...last }
}

/** A webhook without its secrets. */
export function webhookJson(webhook: Webhook): Record<string, unknown> {
  return {
    ...pickMembers(webhook, ['id', 'url', 'events', 'partner', 'state', 'createdAt']),
    failing_since: optionalRfc3339(webhook.failingSince),
    old_secret_expires_at: optionalRfc3339(
      webhook.secrets.slice(1).map(({ expiresAt }) => expiresAt!).sort().at(-1),
    ),
    pending_removed_at: optionalRfc3339(webhook.disabledAt && webhook.disabledAt + RETENTION_MS),
  }
}

export function deliveryJson(delivery: Delivery): Record<string, unknown> {
  return pickMembers(delivery, [
    'id',
    'webhook',
    'type',
    'partner',
    'createdAt',
    'state',
    'attempts',
    'dueAt',
    'lastStatus',
    'lastError',
  ])
}

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

/** Picks members in this order; absent ones are null. */
function pickMembers<T extends object>(
  record: T,
  names: readonly (keyof T & string)[],
): Record<string, unknown> {
  const members: Record<string, unknown> = {}
  for (const name of names) {
    const [wireName, value] = jsonMember(name, record[name] ?? null)
    members[wireName] = value
  }
  return members
}

/** A state in the audit log; the text itself if it is not valid JSON, since anyone may have edited the table. */
export function auditStateJson(text: string | undefined): Record<string, unknown> | string | null {
  if (text === undefined) return null
  const state = parseJson(text)
  if (!isObject(state)) return text
  const members = Object.entries(state).filter(([name]) => name !== 'digestHash')
  return Object.fromEntries(members.map(([name, value]) => jsonMember(name, value)))
}

function jsonMember(name: string, value: unknown): [name: string, value: unknown] {
  const wireName = toSnakeCase(name)
  if (name === 'hint') return [wireName, `…${value}`]
  if (name === 'limits' && isLimits(value)) return [wireName, limitsJson(value)]
  return [wireName, name.endsWith('At') ? instantJson(value) : value]
}

/** An instant in the audit log; the value itself if it is invalid. */
function instantJson(value: unknown): unknown {
  return Number.isInteger(value) && !Number.isNaN(new Date(value as number).getTime())
    ? rfc3339(value as number)
    : value
}

function isLimits(value: unknown): value is LimitOverrides {
  return isObject(value) && Object.values(value).every(isObject)
}

function limitsJson(limits: LimitOverrides): object[] {
  return Object.entries(limits).map(([policy, { quota, windowSeconds }]) => ({
    policy,
    quota,
    window_seconds: windowSeconds ?? null,
  }))
}
