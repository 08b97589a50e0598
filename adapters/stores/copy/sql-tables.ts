/** How rows stand in the tables of SQL stores: the part of copying that these share. */
import type { MaybePromise } from '../../../core/lib/promise.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import { cardText, detailText, readCard, readDetail, RECORD_FORMATS } from '../content-text.ts'
import type { Value } from '../row-format.ts'
import { AUDIT_ENTRIES, KEYS, PARTNERS } from '../rows.ts'
import { readSignup, SIGNUP_COLUMNS, type SignupRow, signupRow } from '../signups.ts'
import { StoreError } from '../store-error.ts'
import type { WritableTable } from './source-and-target.ts'
import {
  type CopiedRows,
  IDEMPOTENCY_CLAIMS,
  INDUSTRIES,
  REQUEST_COUNTS,
  type Setting,
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

type SqlTables = { readonly [Name in Exclude<TableName, 'settings'>]: SqlTable<CopiedRows[Name]> }

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
      revokedAt: nullToUndefined<number>(values[KEYS.columns.length]),
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
        publishedAt: nullToUndefined<number>(publishedAt),
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
  idempotency_keys: { name: 'idempotency', keyLength: 3, ...IDEMPOTENCY_CLAIMS },
  signup_counts: { name: 'signup_tally', keyLength: 4, ...SIGNUP_COUNTS },
  request_counts: { name: 'usage', keyLength: 3, ...REQUEST_COUNTS },
  audit: { name: 'audit', keyLength: 1, ...AUDIT_ENTRIES },
}

function nullToUndefined<T extends Value>(value: Value | undefined): T | undefined {
  return value === null ? undefined : value as T
}

/** The row of an SQL store that holds its settings. */
export interface SettingsRow {
  readonly keyPrefix: string
  readonly cursorSecret: string
  readonly auditSequence: number
  readonly auditSeal: string
}

/** That row as a table of settings. */
export function createSettingsTable(
  readRow: () => MaybePromise<SettingsRow>,
  writeRow: (row: SettingsRow) => MaybePromise<void>,
): WritableTable<Setting> {
  return {
    async read(after, limit) {
      const from = after?.[0] ?? ''
      return toSettings(await readRow()).filter(({ name }) => name > from).slice(0, limit)
    },
    async write(put) {
      const row = { ...await readRow() }
      for (const { name, value } of put) {
        if (name === 'key_prefix') row.keyPrefix = value
        else if (name === 'cursor_secret') row.cursorSecret = value
        else {
          const [sequence, seal = ''] = value.split(' ')
          row.auditSequence = Number(sequence)
          row.auditSeal = seal
        }
      }
      await writeRow(row)
    },
  }
}

/** By name. */
function toSettings({ keyPrefix, cursorSecret, auditSequence, auditSeal }: SettingsRow): Setting[] {
  return [
    { name: 'audit_head', value: `${auditSequence} ${auditSeal}` },
    { name: 'cursor_secret', value: cursorSecret },
    { name: 'key_prefix', value: keyPrefix },
  ]
}

/** A trail that is read only as far as a store can have written it: another kind of store could not hold the rest. */
export function withSafeIntegers(place: string, table: WritableTable<AuditEntry>): WritableTable<AuditEntry> {
  return {
    async read(after, limit) {
      const entries = await table.read(after, limit)
      if (entries.every(hasSafeIntegers)) return entries
      throw unsafeIntegerError(place)
    },
    write: table.write,
  }
}

function hasSafeIntegers({ sequence, at }: AuditEntry): boolean {
  return Number.isSafeInteger(sequence) && Number.isSafeInteger(at)
}

function unsafeIntegerError(place: string): StoreError {
  return new StoreError(
    'refused',
    `The audit trail of ${place} holds a row that no program of ours has written, and that cannot be copied: audit ` +
      'verify names the first.',
  )
}
