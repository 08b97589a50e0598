/** How rows stand in the tables of SQL stores: the part of copying that these share. */
import { ENTRIES } from '../entry-rows.ts'
import { cardText, detailText, readCard, readDetail, RECORD_FORMATS } from '../record-text.ts'
import type { Value } from '../row-format.ts'
import { KEYS, PARTNERS } from '../rows.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow, signupRow } from '../signup-rows.ts'
import {
  type ArchiveRows,
  CLAIMS,
  INDUSTRIES,
  REQUEST_COUNTS,
  SIGNUP_COUNTS,
  type TableName,
} from './tables.ts'

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

type SqlTables = { readonly [Name in Exclude<TableName, 'settings'>]: SqlTable<ArchiveRows[Name]> }

/** The tables that are as their rows are; settings are one row that holds all of them. */
export const SQL_TABLES: SqlTables = {
  partners: { name: 'partner', keyLength: 1, ...PARTNERS },
  keys: {
    name: 'partner_key',
    columns: [...KEYS.columns, 'revoked_at'],
    keyLength: 1,
    values: ({ key, revokedAt }) => [...KEYS.values(key), revokedAt ?? null],
    read: (values) => ({
      key: KEYS.read(values),
      revokedAt: optional<number>(values[KEYS.columns.length]),
    }),
  },
  industries: { name: 'industry', keyLength: 1, ...INDUSTRIES },
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
  idempotency_keys: { name: 'idempotency', keyLength: 3, ...CLAIMS },
  signup_counts: { name: 'signup_tally', keyLength: 4, ...SIGNUP_COUNTS },
  request_counts: { name: 'usage', keyLength: 3, ...REQUEST_COUNTS },
  audit: { name: 'audit', keyLength: 1, ...ENTRIES },
}

function optional<T extends Value>(value: Value | undefined): T | undefined {
  return value === null ? undefined : value as T
}
