/** The tables of the SQL stores. Queries, imports and `store copy` use these descriptions. */
import { type Fields, pickFields } from '../../../core/content/fields.ts'
import { CONTENT_FIELDS } from '../../../core/content/kinds.ts'
import type {
  Environment,
  Industry,
  Key,
  KeyFacts,
  LimitOverrides,
  ModuleDefinition,
  Partner,
  PolicyName,
  Profile,
  ProfileCard,
} from '../../../core/model.ts'
import type { AuditEntry } from '../../../core/ports/audit.ts'
import type { Claim, DigestScheme } from '../../../core/ports/changes.ts'
import type { ContentKind, ContentRecords, ProfileRecord } from '../../../core/ports/content.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import type { KeyUsage, RecordedProblem } from '../../../core/ports/reports.ts'
import type { Signup, SignupInput } from '../../../core/ports/signups.ts'
import type { RecordedEndpoint } from '../../../core/ports/store.ts'
import type { Delivery, Webhook } from '../../../core/ports/webhooks.ts'
import {
  type Codec,
  createRowFormat,
  type RowFormat,
  type SqlValue,
  type StoredRow,
  wordList,
} from './row-format.ts'

/** JSON, with NULL for the empty value. */
function jsonCodec<T extends object>(empty: T): Codec<T> {
  const emptyText = JSON.stringify(Object.freeze(empty))
  return {
    encode(value) {
      const text = JSON.stringify(value)
      return text === emptyText ? null : text
    },
    decode: (text) => text === null ? empty : JSON.parse(text),
  }
}

const limitsCodec = jsonCodec<LimitOverrides>({})

export const DIGEST_SCHEMES = createRowFormat<DigestScheme>()(['id', 'algorithm', 'prefix', 'secret'])

export const MODULES = createRowFormat<ModuleDefinition>()(['name', 'scope', 'feature'])

export const ENDPOINTS = createRowFormat<RecordedEndpoint>({ limits: jsonCodec<readonly PolicyName[]>([]) })(
  ['service', 'name', 'method', 'path', 'scope', 'limits'],
)

export const PARTNERS: RowFormat<Partner> = createRowFormat<Partner>({
  modules: wordList,
  limits: limitsCodec,
  tags: wordList,
  selfService: wordList as Codec<Partner['selfService']>,
})([
  'slug',
  'name',
  'state',
  'modules',
  'limits',
  'createdAt',
  'contact',
  'tags',
  'externalId',
  'note',
  'selfService',
])

export const KEYS: RowFormat<Key> = createRowFormat<Key>({
  scopes: wordList,
  allow: jsonCodec<readonly string[]>([]),
  limits: limitsCodec,
  tags: wordList,
})([
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
  'createdAt',
  'expiresAt',
  'retiresAt',
  'predecessorId',
  'successorId',
  'lastUsedAt',
  'owner',
  'tags',
])

export const CLAIMS = createRowFormat<Claim>()(
  ['id', 'digest', 'partner', 'name', 'draft', 'state', 'createdAt', 'expiresAt', 'keyId'],
)

/** The columns of a key `k` and its partner `p`, in the order in which `readKeyFacts` reads them. */
export const KEY_FACTS_COLUMNS: readonly string[] = [
  ...KEYS.columns.map((column) => `k.${column}`),
  ...PARTNERS.columns.map((column) => `p.${column}`),
]

export function readKeyFacts(row: StoredRow): KeyFacts {
  return { key: KEYS.read(row), partner: PARTNERS.read(row.slice(KEYS.columns.length)) }
}

export const AUDIT_ENTRIES = createRowFormat<AuditEntry>({
  sequence: { encode: Number, decode: readSequence },
  at: { encode: Number, decode: Number },
})(['sequence', 'id', 'at', 'actor', 'type', 'partner', 'keyId', 'subject', 'before', 'after', 'hash'])

export const KEY_USAGE = createRowFormat<KeyUsage>()(['keyId', 'day', 'endpoint', 'requests', 'errors'])

export const PROBLEMS = createRowFormat<RecordedProblem>()(
  ['keyId', 'at', 'id', 'partner', 'environment', 'record'],
)

/** The columns of a signup, in the order of `SignupRow`. */
export const SIGNUP_COLUMNS = ['id', 'partner', 'key_id', 'environment', 'created_at', 'record'] as const

export type SignupRow = [
  id: string,
  partner: string,
  keyId: string,
  environment: Environment,
  createdAt: number,
  record: string,
]

export function signupRow(signup: Signup): SignupRow {
  const { id, partner, keyId, environment, createdAt } = signup
  return [id, partner, keyId, environment, createdAt, JSON.stringify(pickInput(signup))]
}

export function readSignup([id, partner, keyId, environment, createdAt, record]: SignupRow): Signup {
  return { ...pickInput(JSON.parse(record)), id, partner, keyId, environment, createdAt }
}

/** Exactly the members of the form, absent ones as `undefined`. */
function pickInput(input: SignupInput): SignupInput {
  const { email, name, company, country, plan, profile, locale, message, consentAt, metadata } = input
  return { email, name, company, country, plan, profile, locale, message, consentAt, metadata }
}

const json = { encode: JSON.stringify, decode: JSON.parse } satisfies Codec<readonly never[]>

type Secret = Webhook['secrets'][number]

const secretsCodec: Codec<readonly Secret[]> = {
  encode: JSON.stringify,
  decode: (text) => JSON.parse(text).map(({ sealed, expiresAt }: Secret) => ({ sealed, expiresAt })),
}

export const WEBHOOKS = createRowFormat<Webhook>({ events: json, secrets: secretsCodec })([
  'id',
  'url',
  'events',
  'partner',
  'state',
  'createdAt',
  'secrets',
  'failingSince',
  'disabledAt',
])

export const DELIVERIES = createRowFormat<Delivery>()([
  'webhook',
  'id',
  'type',
  'partner',
  'createdAt',
  'payload',
  'state',
  'attempts',
  'dueAt',
  'lastStatus',
  'lastError',
])

/** An unsafe integer is infinite: rounded, it would be the position of many rows, and no page would get past them. */
export function readSequence(text: string): number {
  const sequence = Number(text)
  return Number.isSafeInteger(sequence) ? sequence : sequence * Infinity
}

/** The table of a kind of content. Equal records have equal rows, which begin with the slug (banners: the partner). */
interface ContentFormat<R> extends RowFormat<R> {
  readonly name: string
  /** Whether the table also has `updated_at`, the instant of the import that last changed the record. */
  readonly isDated: boolean
}

/** The rows of a profile, without the columns that follow from these. */
export type ProfileRow = [
  slug: string,
  country: string,
  industry: string,
  publishedAt: number | null,
  card: string,
  detail: string,
]

const {
  slug: _slug,
  country: _country,
  industry: _industry,
  publishedAt: _publishedAt,
  name,
  headline,
  logoUrl,
  ...details
} = CONTENT_FIELDS.profiles

const cardFields: Fields<Pick<ProfileCard, 'name' | 'headline' | 'logoUrl'>> = { name, headline, logoUrl }

type ProfileDetail = Omit<Profile, keyof ProfileCard> & Pick<ProfileRecord, 'visibleTo'>

const detailFields: Fields<ProfileDetail> = details

/** The members that the columns and the card of a profile lack. */
export function readDetail(text: string): ProfileDetail {
  return pickFields(detailFields, JSON.parse(text))
}

export const PROFILES = {
  name: 'profile',
  columns: ['slug', 'country', 'industry', 'published_at', 'card', 'detail'],
  isDated: true,
  values(record: ProfileRecord): ProfileRow {
    const { slug, country, industry, publishedAt } = record
    const card = JSON.stringify(pickFields(cardFields, record))
    const detail = JSON.stringify(pickFields(detailFields, record))
    return [slug, country, industry, publishedAt ?? null, card, detail]
  },
  read(row: readonly SqlValue[]): ProfileRecord {
    const [slug, country, industry, publishedAt, card, detail] = row as ProfileRow
    return {
      slug,
      country,
      industry,
      publishedAt: publishedAt ?? undefined,
      ...pickFields(cardFields, JSON.parse(card)),
      ...readDetail(detail),
    }
  },
} satisfies ContentFormat<ProfileRecord>

/** The format of plans and banners: no query looks into them, so one column holds the record as JSON. */
function recordTable<R extends object>(
  table: Pick<ContentFormat<R>, 'name' | 'isDated'>,
  key: keyof R & string,
  fields: Fields<R>,
): ContentFormat<R> {
  return {
    ...table,
    columns: [key, 'record'],
    values: (record) => [String(record[key]), JSON.stringify(pickFields(fields, record))],
    read: ([, text]) => pickFields(fields, JSON.parse(String(text))),
  }
}

export const CONTENT_TABLES: { readonly [K in ContentKind]: ContentFormat<ContentRecords[K]> } = {
  profiles: PROFILES,
  industries: {
    name: 'industry',
    isDated: false,
    ...createRowFormat<Industry>()(['slug', 'name', 'parentSlug']),
  },
  plans: recordTable({ name: 'plan', isDated: false }, 'slug', CONTENT_FIELDS.plans),
  banners: recordTable({ name: 'banner', isDated: true }, 'partner', CONTENT_FIELDS.banners),
}

/** A row of `CARD_COLUMNS`. */
export type CardRow = [
  slug: string,
  country: string,
  industry: string,
  industryName: string,
  publishedAt: number,
  updatedAt: number,
  card: string,
]

/** The columns of the card of a profile `p` and its industry `i`. */
export const CARD_COLUMNS = 'p.slug, p.country, p.industry, i.name, p.published_at, p.updated_at, p.card'

export function readCardRow(row: CardRow): ProfileCard {
  const [slug, country, industrySlug, industryName, publishedAt, updatedAt, card] = row
  const { name, headline, logoUrl } = JSON.parse(card)
  const industry = { slug: industrySlug, name: industryName }
  return { slug, name, headline, country, industry, logoUrl, publishedAt, updatedAt }
}

/** The position that a page starts after. By recency, profiles that are not due come before it. */
export function startPosition(
  { sort, after }: ProfileQuery,
  now: number,
): [key: string | number, slug: string] {
  if (sort === 'name') return after === undefined ? ['', ''] : [after.key, after.slug]
  return after === undefined || Number(after.key) > now ? [-now, ''] : [-after.key, after.slug]
}

/** A table as `store copy` reads and writes it. Other columns follow from these. */
export interface CopiedTable {
  readonly name: string
  readonly columns: readonly string[]
  /** How many of the columns are the primary key; 0 for a table of one row. */
  readonly keyLength: number
}

/**
 * All that a store keeps, in the order of foreign keys. `store copy` leaves out what follows from profiles
 * (listings, words, counters), what lives for seconds (replicas, quotas, batches of counts) and the endpoints,
 * which services record again when they start.
 */
export const COPIED_TABLES = {
  settings: {
    name: 'store',
    columns: ['key_prefix', 'cursor_secret', 'audit_sequence', 'audit_hash'],
    keyLength: 0,
  },
  modules: { name: 'module', columns: [...MODULES.columns, 'position'], keyLength: 1 },
  partners: { name: 'partner', columns: PARTNERS.columns, keyLength: 1 },
  digest_schemes: { name: 'digest_scheme', columns: DIGEST_SCHEMES.columns, keyLength: 1 },
  keys: { name: 'partner_key', columns: [...KEYS.columns, 'revoked_at'], keyLength: 1 },
  claims: { name: 'claim', columns: CLAIMS.columns, keyLength: 1 },
  industries: copiedContent('industries'),
  profiles: copiedContent('profiles'),
  plans: copiedContent('plans'),
  banners: copiedContent('banners'),
  signups: { name: 'signup', columns: SIGNUP_COLUMNS, keyLength: 1 },
  idempotency_keys: {
    name: 'idempotency',
    columns: ['partner', 'environment', 'key', 'fingerprint', 'signup_id', 'created_at', 'expires_at'],
    keyLength: 3,
  },
  signup_counts: {
    name: 'signup_tally',
    columns: ['partner', 'dimension', 'day', 'value', 'signups'],
    keyLength: 4,
  },
  request_counts: {
    name: 'usage',
    columns: ['partner', 'day', 'endpoint', 'requests', 'errors'],
    keyLength: 3,
  },
  key_request_counts: { name: 'key_usage', columns: KEY_USAGE.columns, keyLength: 3 },
  problems: { name: 'problem', columns: PROBLEMS.columns, keyLength: 3 },
  webhooks: { name: 'webhook', columns: WEBHOOKS.columns, keyLength: 1 },
  webhook_deliveries: { name: 'webhook_delivery', columns: DELIVERIES.columns, keyLength: 2 },
  audit: { name: 'audit', columns: AUDIT_ENTRIES.columns, keyLength: 1 },
} satisfies Record<string, CopiedTable>

/** The name of a table in reports of `store copy`. */
export type TableName = keyof typeof COPIED_TABLES

export const TABLE_NAMES = Object.keys(COPIED_TABLES) as readonly TableName[]

function copiedContent(kind: ContentKind): CopiedTable {
  const { name, columns, isDated } = CONTENT_TABLES[kind]
  return { name, columns: isDated ? [...columns, 'updated_at'] : columns, keyLength: 1 }
}
