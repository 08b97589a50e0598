import type { Banner, Environment, Industry, Key, Partner, Plan } from '../../../core/model.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import type { ProfileRecord } from '../../../core/ports/content.ts'
import type { UsageCount } from '../../../core/ports/reports.ts'
import type { IdempotencyClaim, Signup } from '../../../core/ports/signups.ts'
import { RECORD_FORMATS } from '../content-text.ts'
import { createRowFormat, type RowFormat, type Value } from '../row-format.ts'
import { AUDIT_ENTRIES, KEYS, PARTNERS } from '../rows.ts'
import { signupRow } from '../signups.ts'

/** What a row is found by, of one length and kind in a table. Texts are in the order of their code points. */
export type RowKey = readonly (string | number)[]

/**
 * Everything that a store keeps, in core's words, and the one text that a row has whatever store it is in. Listings,
 * words and tallies of the directory follow from profiles and are not among it; nor is what lives for seconds only:
 * who serves the store, what is left of quotas, and which batches of counts have arrived.
 */

/** What was settled when the store was made, and where its audit trail ends. */
export interface Setting {
  readonly name: 'audit_head' | 'cursor_secret' | 'key_prefix'
  readonly value: string
}

/** A key, and when it was revoked where somebody knows that. */
export interface CopiedKey {
  readonly key: Key
  readonly revokedAt: number | undefined
}

/** A profile, and when it changed last. */
export interface CopiedProfile {
  readonly record: ProfileRecord
  readonly updatedAt: number
}

/** The signup that an idempotency key stands for. */
export interface CopiedClaim extends IdempotencyClaim {
  readonly partner: string
  readonly environment: Environment
  readonly signupId: string
  readonly createdAt: number
}

/** Live signups of a day that had a plan or a country, `''` for those that had none. */
export interface SignupCount {
  readonly partner: string
  readonly dimension: 'plan' | 'country'
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
  readonly value: string
  readonly signups: number
}

/** The rows of each table. */
export interface CopiedRows {
  settings: Setting
  partners: Partner
  keys: CopiedKey
  industries: Industry
  profiles: CopiedProfile
  plans: Plan
  banners: Banner
  signups: Signup
  idempotency_keys: CopiedClaim
  signup_counts: SignupCount
  request_counts: UsageCount
  audit: AuditEntry
}

export type TableName = keyof CopiedRows

/** How the rows of a table are found, compared and spoken of. */
export interface TableSpec<R> {
  key(row: R): RowKey
  /** Equal rows have equal texts, and rows that differ have texts that differ. */
  text(row: R): string
  /** What a message calls a row, when that is not its key: it tells nothing that a partner or a person has sent. */
  label?(row: R): string
  /** Whether a row is to be there at an instant; without it, every row is. */
  isLive?(row: R, now: number): boolean
}

export const INDUSTRIES: RowFormat<Industry> = createRowFormat<Industry>({
  slug: 'slug',
  name: 'name',
  parentSlug: 'parent_slug',
})

export const IDEMPOTENCY_CLAIMS: RowFormat<CopiedClaim> = createRowFormat<CopiedClaim>({
  partner: 'partner',
  environment: 'environment',
  key: 'key',
  fingerprint: 'fingerprint',
  signupId: 'signup_id',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
})

export const SIGNUP_COUNTS: RowFormat<SignupCount> = createRowFormat<SignupCount>({
  partner: 'partner',
  dimension: 'dimension',
  day: 'day',
  value: 'value',
  signups: 'signups',
})

export const REQUEST_COUNTS: RowFormat<UsageCount> = createRowFormat<UsageCount>({
  partner: 'partner',
  day: 'day',
  endpoint: 'endpoint',
  requests: 'requests',
  errors: 'errors',
})

/** In the order in which reports name them. */
export const TABLES: { readonly [Name in TableName]: TableSpec<CopiedRows[Name]> } = {
  settings: {
    key: ({ name }) => [name],
    text: ({ name, value }) => jsonArray(name, value),
  },
  partners: specFromFormat(PARTNERS, 1),
  keys: {
    key: ({ key }) => [key.id],
    text: ({ key, revokedAt }) => jsonArray(...KEYS.fields.map((field) => key[field]), revokedAt),
  },
  industries: {
    key: ({ slug }) => [slug],
    text: RECORD_FORMATS.industries.text,
  },
  profiles: {
    key: ({ record }) => [record.slug],
    text: ({ record, updatedAt }) => jsonArray(RECORD_FORMATS.profiles.text(record), updatedAt),
  },
  plans: {
    key: ({ slug }) => [slug],
    text: RECORD_FORMATS.plans.text,
  },
  banners: {
    key: ({ partner }) => [partner],
    text: (banner) => jsonArray(RECORD_FORMATS.banners.text(banner), banner.updatedAt),
  },
  signups: {
    key: ({ id }) => [id],
    text: (signup) => jsonArray(...signupRow(signup)),
  },
  idempotency_keys: {
    ...specFromFormat(IDEMPOTENCY_CLAIMS, 3),
    label: ({ partner, signupId }) => `${partner} ${signupId}`,
    isLive: ({ expiresAt }, now) => expiresAt > now,
  },
  signup_counts: specFromFormat(SIGNUP_COUNTS, 4),
  request_counts: specFromFormat(REQUEST_COUNTS, 3),
  audit: specFromFormat(AUDIT_ENTRIES, 1),
}

export const TABLE_NAMES: readonly TableName[] = Object.keys(TABLES) as TableName[]

/** A table that holds what its rows hold, the first of it as its key. */
function specFromFormat<R>({ fields }: RowFormat<R>, keyLength: number): TableSpec<R> {
  return {
    key: (row) => fields.slice(0, keyLength).map((field) => row[field] as NonNullable<Value>),
    text: (row) => jsonArray(...fields.map((field) => row[field])),
  }
}

/** A JSON array: two lists that differ have texts that differ, and what is absent is `null` in it. */
function jsonArray(...values: unknown[]): string {
  return JSON.stringify(values)
}
