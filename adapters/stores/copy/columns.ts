/** How rows stand in the tables of SQL stores: the part of copying that these share. */
import type { Environment } from '../../../core/model.ts'
import { ENTRY_COLUMNS, type EntryRow, entryRow, readEntry } from '../entry-rows.ts'
import { cardText, detailText, readCard, readDetail, RECORD_FORMATS } from '../record-text.ts'
import {
  KEY_COLUMNS,
  type KeyRow,
  keyRow,
  PARTNER_COLUMNS,
  type PartnerRow,
  partnerRow,
  readKey,
  readPartner,
} from '../rows.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow, signupRow } from '../signup-rows.ts'
import type { ArchiveRows, SignupCount, TableName } from './tables.ts'

/** What a column holds. */
export type Value = string | number | null

/** A table of SQL stores. */
export interface SqlTable<R> {
  readonly name: string
  /** Those that are written. The first of them are the primary key. */
  readonly columns: readonly string[]
  /** How many of the columns are the key. */
  readonly keyLength: number
  values(row: R): readonly Value[]
  read(values: readonly Value[]): R
}

/** The columns of these names hold integers of 64 bits or less; all others hold text. */
export const INTEGER_COLUMNS: ReadonlySet<string> = new Set([
  'modules',
  'scopes',
  'created_at',
  'expires_at',
  'retires_at',
  'last_used_at',
  'retired',
  'revoked_at',
  'published_at',
  'updated_at',
  'signups',
  'requests',
  'errors',
  'sequence',
  'at',
])

type SqlTables = { readonly [Name in Exclude<TableName, 'settings'>]: SqlTable<ArchiveRows[Name]> }

/** The tables that are as their rows are; settings are one row that holds all of them. */
export const SQL_TABLES: SqlTables = {
  partners: {
    name: 'partner',
    columns: PARTNER_COLUMNS,
    keyLength: 1,
    values: partnerRow,
    read: (values) => readPartner(values as PartnerRow),
  },
  keys: {
    name: 'partner_key',
    columns: [...KEY_COLUMNS, 'revoked_at'],
    keyLength: 1,
    values: ({ key, revokedAt }) => [...keyRow(key), revokedAt ?? null],
    read: (values) => ({
      key: readKey(values.slice(0, KEY_COLUMNS.length) as KeyRow),
      revokedAt: optional<number>(values[KEY_COLUMNS.length]),
    }),
  },
  industries: {
    name: 'industry',
    columns: ['slug', 'name', 'parent_slug'],
    keyLength: 1,
    values: ({ slug, name, parentSlug }) => [slug, name, parentSlug ?? null],
    read: ([slug, name, parentSlug]) => ({
      slug: slug as string,
      name: name as string,
      parentSlug: optional<string>(parentSlug),
    }),
  },
  profiles: {
    name: 'profile',
    columns: ['slug', 'country', 'industry', 'published_at', 'updated_at', 'card', 'detail'],
    keyLength: 1,
    values: ({ record, updatedAt }) => [
      record.slug,
      record.country,
      record.industry,
      record.publishedAt ?? null,
      updatedAt,
      cardText(record),
      detailText(record),
    ],
    read: ([slug, country, industry, publishedAt, updatedAt, card, detail]) => ({
      record: {
        slug: slug as string,
        country: country as string,
        industry: industry as string,
        publishedAt: optional<number>(publishedAt),
        ...readCard(card as string),
        ...readDetail(detail as string),
      },
      updatedAt: updatedAt as number,
    }),
  },
  plans: {
    name: 'plan',
    columns: ['slug', 'record'],
    keyLength: 1,
    values: (plan) => [plan.slug, RECORD_FORMATS.plans.text(plan)],
    read: ([, record]) => RECORD_FORMATS.plans.read(record as string),
  },
  banners: {
    name: 'banner',
    columns: ['partner', 'record', 'updated_at'],
    keyLength: 1,
    values: (banner) => [banner.partner, RECORD_FORMATS.banners.text(banner), banner.updatedAt],
    read: ([, record, updatedAt]) => ({
      ...RECORD_FORMATS.banners.read(record as string),
      updatedAt: updatedAt as number,
    }),
  },
  signups: {
    name: 'signup',
    columns: SIGNUP_COLUMNS,
    keyLength: 1,
    values: signupRow,
    read: (values) => readSignup(values as SignupRow),
  },
  idempotency_keys: {
    name: 'idempotency',
    columns: ['partner', 'environment', 'key', 'fingerprint', 'signup_id', 'created_at', 'expires_at'],
    keyLength: 3,
    values: ({ partner, environment, key, fingerprint, signupId, createdAt, expiresAt }) => [
      partner,
      environment,
      key,
      fingerprint,
      signupId,
      createdAt,
      expiresAt,
    ],
    read: ([partner, environment, key, fingerprint, signupId, createdAt, expiresAt]) => ({
      partner: partner as string,
      environment: environment as Environment,
      key: key as string,
      fingerprint: fingerprint as string,
      signupId: signupId as string,
      createdAt: createdAt as number,
      expiresAt: expiresAt as number,
    }),
  },
  signup_counts: {
    name: 'signup_tally',
    columns: ['partner', 'dimension', 'day', 'value', 'signups'],
    keyLength: 4,
    values: ({ partner, dimension, day, value, signups }) => [partner, dimension, day, value, signups],
    read: ([partner, dimension, day, value, signups]) => ({
      partner: partner as string,
      dimension: dimension as SignupCount['dimension'],
      day: day as string,
      value: value as string,
      signups: signups as number,
    }),
  },
  request_counts: {
    name: 'usage',
    columns: ['partner', 'day', 'endpoint', 'requests', 'errors'],
    keyLength: 3,
    values: ({ partner, day, endpoint, requests, errors }) => [partner, day, endpoint, requests, errors],
    read: ([partner, day, endpoint, requests, errors]) => ({
      partner: partner as string,
      day: day as string,
      endpoint: endpoint as string,
      requests: requests as number,
      errors: errors as number,
    }),
  },
  audit: {
    name: 'audit',
    columns: ENTRY_COLUMNS,
    keyLength: 1,
    values: entryRow,
    read: (values) => readEntry(values as EntryRow),
  },
}

function optional<T extends Value>(value: Value | undefined): T | undefined {
  return value === null ? undefined : value as T
}
