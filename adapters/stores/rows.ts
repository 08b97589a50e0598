import type { Key, KeyFacts, LimitOverrides, Partner } from '../../core/model.ts'
import { moduleSet, scopeSet } from './bits.ts'
import { type Codec, createRowFormat, type RowFormat, type StoredRow } from './row-format.ts'

const noLimits: LimitOverrides = Object.freeze({})
const fromAnywhere: readonly string[] = Object.freeze([])

const limitsText: Codec<LimitOverrides> = {
  encode(limits) {
    const text = JSON.stringify(limits)
    return text === '{}' ? null : text
  },
  decode: (text) => text === null ? noLimits : JSON.parse(text),
}

const rangesText: Codec<readonly string[]> = {
  encode: (ranges) => ranges.length === 0 ? null : JSON.stringify(ranges),
  decode: (text) => text === null ? fromAnywhere : JSON.parse(text),
}

export const PARTNERS: RowFormat<Partner> = createRowFormat<Partner>({
  slug: 'slug',
  name: 'name',
  state: 'state',
  modules: 'modules',
  limits: 'limits',
  createdAt: 'created_at',
}, { modules: moduleSet, limits: limitsText })

const keyFields = createRowFormat<Key>({
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
}, { scopes: scopeSet, allow: rangesText, limits: limitsText })

/** That a key is retired, its last column says: SQLite cannot add a value to those that the column of its state takes. */
export const KEYS: RowFormat<Key> = {
  fields: keyFields.fields,
  columns: [...keyFields.columns, 'retired'],
  values: (key) =>
    key.state === 'retired'
      ? [...keyFields.values({ ...key, state: 'active' }), 1]
      : [...keyFields.values(key), 0],
  read(row) {
    const key = keyFields.read(row)
    return row[keyFields.columns.length] === 1 ? { ...key, state: 'retired' } : key
  },
}

/** The position before every key in a list of them. */
export const BEFORE_ALL_KEYS: Pick<Key, 'createdAt' | 'id'> = { createdAt: -Number.MAX_SAFE_INTEGER, id: '' }

/** The columns of a key `k` and its partner `p`, in the order in which `readKeyFacts` reads them. */
export const KEY_FACTS_COLUMNS: readonly string[] = [
  ...KEYS.columns.map((column) => `k.${column}`),
  ...PARTNERS.columns.map((column) => `p.${column}`),
]

export function readKeyFacts(row: StoredRow): KeyFacts {
  return { key: KEYS.read(row), partner: PARTNERS.read(row.slice(KEYS.columns.length)) }
}
