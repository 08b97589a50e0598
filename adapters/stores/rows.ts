import type { Key, KeyFacts, LimitOverrides, Partner } from '../../core/model.ts'
import { moduleSet, scopeSet } from './bits.ts'

/** The columns of a partner, in the order of `PartnerRow`. */
export const PARTNER_COLUMNS = ['slug', 'name', 'state', 'modules', 'limits', 'created_at'] as const

export type PartnerRow = [
  slug: string,
  name: string,
  state: string,
  modules: number,
  limits: string | null,
  createdAt: number,
]

/** The columns of a key, in the order of `KeyRow`. */
export const KEY_COLUMNS = [
  'id',
  'partner',
  'name',
  'environment',
  'digest',
  'hint',
  'state',
  'scopes',
  'allow',
  'limits',
  'created_at',
  'expires_at',
  'retires_at',
  'successor_id',
  'last_used_at',
  'retired',
] as const

/** The position before every key in a list of them. */
export const BEFORE_ALL_KEYS: Pick<Key, 'createdAt' | 'id'> = { createdAt: -Number.MAX_SAFE_INTEGER, id: '' }

export type KeyRow = [
  id: string,
  partner: string,
  name: string,
  environment: string,
  digest: string,
  hint: string,
  state: string,
  scopes: number,
  allow: string | null,
  limits: string | null,
  createdAt: number,
  expiresAt: number | null,
  retiresAt: number | null,
  successorId: string | null,
  lastUsedAt: number | null,
  retired: number,
]

/** The columns of a key `k` and its partner `p`, in the order of `KeyFactsRow`. */
export const KEY_FACTS_COLUMNS: readonly string[] = [
  ...KEY_COLUMNS.map((column) => `k.${column}`),
  ...PARTNER_COLUMNS.map((column) => `p.${column}`),
]

export type KeyFactsRow = [...KeyRow, ...PartnerRow]

const noLimits: LimitOverrides = Object.freeze({})
const fromAnywhere: readonly string[] = Object.freeze([])

export function partnerRow(partner: Partner): PartnerRow {
  return [
    partner.slug,
    partner.name,
    partner.state,
    moduleSet.encode(partner.modules),
    limitsText(partner.limits),
    partner.createdAt,
  ]
}

export function readPartner([slug, name, state, modules, limits, createdAt]: PartnerRow): Partner {
  return {
    slug,
    name,
    state: state as Partner['state'],
    modules: moduleSet.decode(modules),
    limits: readLimits(limits),
    createdAt,
  }
}

export function keyRow(key: Key): KeyRow {
  return [
    key.id,
    key.partner,
    key.name,
    key.environment,
    key.digest,
    key.hint,
    // Its own column says it: SQLite cannot add a value to those that a column takes.
    key.state === 'retired' ? 'active' : key.state,
    scopeSet.encode(key.scopes),
    key.allow.length === 0 ? null : JSON.stringify(key.allow),
    limitsText(key.limits),
    key.createdAt,
    key.expiresAt ?? null,
    key.retiresAt ?? null,
    key.successorId ?? null,
    key.lastUsedAt ?? null,
    key.state === 'retired' ? 1 : 0,
  ]
}

export function readKey(row: KeyRow): Key {
  return {
    id: row[0],
    partner: row[1],
    name: row[2],
    environment: row[3] as Key['environment'],
    digest: row[4],
    hint: row[5],
    state: row[15] === 1 ? 'retired' : row[6] as Key['state'],
    scopes: scopeSet.decode(row[7]),
    allow: row[8] === null ? fromAnywhere : JSON.parse(row[8]),
    limits: readLimits(row[9]),
    createdAt: row[10],
    expiresAt: row[11] ?? undefined,
    retiresAt: row[12] ?? undefined,
    successorId: row[13] ?? undefined,
    lastUsedAt: row[14] ?? undefined,
  }
}

export function readKeyFacts(row: KeyFactsRow): KeyFacts {
  const partner = row.slice(KEY_COLUMNS.length) as PartnerRow
  return { key: readKey(row as unknown as KeyRow), partner: readPartner(partner) }
}

function limitsText(limits: LimitOverrides): string | null {
  const text = JSON.stringify(limits)
  return text === '{}' ? null : text
}

function readLimits(text: string | null): LimitOverrides {
  return text === null ? noLimits : JSON.parse(text)
}
