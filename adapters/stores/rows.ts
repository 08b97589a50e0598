import type { Key, KeyFacts, LimitOverrides, Partner } from '../../core/model.ts'
import type { AuditEntry } from '../../core/ports/audit.ts'
import {
  type Codec,
  createRowFormat,
  moduleSet,
  type RowFormat,
  scopeSet,
  type StoredRow,
} from './row-format.ts'

const noLimits: LimitOverrides = Object.freeze({})
const anyAddress: readonly string[] = Object.freeze([])

const limitsCodec: Codec<LimitOverrides> = {
  encode(limits) {
    const text = JSON.stringify(limits)
    return text === '{}' ? null : text
  },
  decode: (text) => text === null ? noLimits : JSON.parse(text),
}

const rangesCodec: Codec<readonly string[]> = {
  encode: (ranges) => ranges.length === 0 ? null : JSON.stringify(ranges),
  decode: (text) => text === null ? anyAddress : JSON.parse(text),
}

export const PARTNERS: RowFormat<Partner> = createRowFormat<Partner>({
  slug: 'slug',
  name: 'name',
  state: 'state',
  modules: 'modules',
  limits: 'limits',
  createdAt: 'created_at',
}, { modules: moduleSet, limits: limitsCodec })

const keyFormat = createRowFormat<Key>({
  id: 'id',
  partner: 'partner',
  name: 'name',
  environment: 'environment',
  digest: 'digest',
  hint: 'hint',
  state: 'state',
  scopes: 'scopes',
  allow: 'allow',
  limits: 'limits',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  retiresAt: 'retires_at',
  successorId: 'successor_id',
  lastUsedAt: 'last_used_at',
}, { scopes: scopeSet, allow: rangesCodec, limits: limitsCodec })

/** That a key is retired, its last column says: SQLite cannot add a value to those that the column of its state takes. */
export const KEYS: RowFormat<Key> = {
  fields: keyFormat.fields,
  columns: [...keyFormat.columns, 'retired'],
  values: (key) =>
    key.state === 'retired'
      ? [...keyFormat.values({ ...key, state: 'active' }), 1]
      : [...keyFormat.values(key), 0],
  read(row) {
    const key = keyFormat.read(row)
    return row[keyFormat.columns.length] === 1 ? { ...key, state: 'retired' } : key
  },
}

/** The position before every key in a list of them. */
export const FIRST_KEY_POSITION: Pick<Key, 'createdAt' | 'id'> = {
  createdAt: -Number.MAX_SAFE_INTEGER,
  id: '',
}

/** The columns of a key `k` and its partner `p`, in the order in which `readKeyFacts` reads them. */
export const KEY_FACTS_COLUMNS: readonly string[] = [
  ...KEYS.columns.map((column) => `k.${column}`),
  ...PARTNERS.columns.map((column) => `p.${column}`),
]

export function readKeyFacts(row: StoredRow): KeyFacts {
  return { key: KEYS.read(row), partner: PARTNERS.read(row.slice(KEYS.columns.length)) }
}

/** The entries of the audit trail. */
export const AUDIT_ENTRIES: RowFormat<AuditEntry> = createRowFormat<AuditEntry>({
  sequence: 'sequence',
  id: 'id',
  at: 'at',
  actor: 'actor',
  type: 'type',
  partner: 'partner',
  keyId: 'key_id',
  subject: 'subject',
  before: 'before',
  after: 'after',
  hash: 'seal',
}, { sequence: { encode: Number, decode: readSequence } })

/**
 * The columns as they are read. Somebody may have put numbers there that a driver would throw at, because no integer of
 * JavaScript's is that large: as floating point they can be read.
 */
export const AUDIT_READ_COLUMNS: readonly string[] = AUDIT_ENTRIES.columns.map((column) =>
  column === 'sequence' || column === 'at' ? `CAST(${column} AS DOUBLE PRECISION)` : column
)

/** The position that the sequence in front of a trail's tail stands for. */
export function readTailSequence(row: readonly [sequence: number] | undefined): number {
  return row === undefined ? -Infinity : readSequence(row[0])
}

/** Not the nearest number that there is: many rows would have the same, and a reader would not get past them. */
function readSequence(sequence: number): number {
  return Number.isSafeInteger(sequence) ? sequence : sequence * Infinity
}
