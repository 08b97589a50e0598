/** Imports keys of another system as digests, so that no partner needs a new key. */
import * as v from 'valibot'
import { object, optional, type Schema } from '../content/fields.ts'
import {
  assertLines,
  createObjectReader,
  type LineErrors,
  type ObjectReader,
} from '../content/line-reader.ts'
import { checkedText, LINE, secretText } from '../content/line-scalars.ts'
import { form, SLUG } from '../content/scalars.ts'
import { formatValue } from '../http/redact.ts'
import type { Sha256 } from '../lib/digest.ts'
import { assertOptions, kindOf, type OptionKinds } from '../lib/options.ts'
import { formatDuration } from '../lib/time.ts'
import { drawKeyId } from '../keys/format.ts'
import { hasEnded, keyState, newKey } from '../keys/lifecycle.ts'
import { KEY_POLICY_NAMES, MAX_QUOTA, MAX_WINDOW_SECONDS } from '../limits/policies.ts'
import {
  type Key,
  type KeyDetails,
  type KeyPolicyName,
  type Limit,
  MAX_TAGS,
  type Modules,
  NO_KEY_DETAILS,
  type Partner,
  TAG_PATTERN,
} from '../model.ts'
import type { Change, DigestScheme } from '../ports/changes.ts'
import { type AdministeredStore, readPartners, type Store } from '../ports/store.ts'
import { createAdministrator, type Operator, readModules } from './apply.ts'
import { changeDetails, equalLimits, findNameProblem, findRangeProblem, inactiveScopes } from './validate.ts'

/** The most keys of one import: other changes wait for their transaction. */
export const MAX_IMPORTED_KEYS = 50_000

/** A look-up computes a digest for each. */
const maxSchemes = 8

/** 128 bits: a digest reveals a secret with fewer. */
const minSecretBytes = 16

/** Options of `importKeys`. */
export interface KeyImportOptions {
  /** The algorithm of lines that name none. */
  readonly algorithm?: DigestScheme['algorithm'] | undefined
  /** The prefix of lines that name none. Default: empty, for digests of whole keys. */
  readonly prefix?: string | undefined
  /** The bytes of the HMAC secret, 16 or more. The store keeps it. */
  readonly secret?: Uint8Array | undefined
  /** Whether keys get the name, scopes, addresses, expiry, limits, owner and tags of lines that differ from them. */
  readonly update?: boolean | undefined
  /** Whether to check the lines without importing them. */
  readonly dryRun?: boolean | undefined
}

const importOptionKinds: OptionKinds<KeyImportOptions> = {
  algorithm: 'a text',
  prefix: 'a text',
  secret: 'anything',
  update: 'true or false',
  dryRun: 'true or false',
}

/** What an import of keys did, or would do; or the errors because of which nothing was written. */
export type KeyImportOutcome = KeyImportReport | LineErrors

/** What an import of keys did, or would do. */
export interface KeyImportReport {
  /** The lines whose keys are new, or differ from them in `fields`: then the key is the one before the import. */
  readonly lines: readonly {
    readonly line: number
    readonly key: Key
    readonly fields?: readonly string[] | undefined
  }[]
  /** The number of keys that equal their lines. */
  readonly unchanged: number
}

/**
 * Imports keys as JSON Lines, all or nothing, in one transaction.
 *
 * @param lines 50,000 at most, with or without line ends.
 * @throws {AdminError} `concurrent_change`
 * @throws {TypeError} for an option that does not exist, and for a value of another kind.
 */
export async function importKeys(
  store: AdministeredStore & Pick<Store, 'sha256'>,
  lines: Iterable<string> | AsyncIterable<string>,
  operator: Operator,
  options: KeyImportOptions = {},
): Promise<KeyImportOutcome> {
  assertOptions('importKeys', options, importOptionKinds)
  assertLines('importKeys', lines)
  if (options.secret !== undefined && !(options.secret instanceof Uint8Array)) {
    throw new TypeError(`importKeys: secret must be a Uint8Array, not ${kindOf(options.secret)}.`)
  }
  const { now, apply } = createAdministrator(store, operator)
  const reader = createObjectReader(lineSchema(await readModules(store)))
  const rows = await readRows(lines, reader, options, store.sha256)
  let report: KeyImportReport = { lines: [], unchanged: 0 }

  await apply(async (modules) => {
    const target = await readTarget(store, rows)
    const changes: Change[] = []
    const changedLines: KeyImportReport['lines'][number][] = []
    const at = now()
    const maxMs = await store.maxKeyLifetimeMs() ?? Infinity
    for (const row of rows) {
      for (const error of conflictsOf(row, target)) reader.addError(row.line, ...error)
      const existing = target.keys.get(row.digest)
      const partner = target.partners.get(row.partner)
      const mismatch = mismatchOf(row, existing, partner)
      if (mismatch !== undefined) {
        reader.addError(row.line, ...mismatch)
        continue
      }
      const ownScopes = partner?.modules.map((module) => modules.scopeOf(module)!) ?? []
      const key = toKey(row, { ...NO_KEY_DETAILS, scopes: ownScopes, ...existing }, at)
      const fields = existing && differingFields(existing, key)
      if (fields?.length === 0) continue
      changedLines.push({ line: row.line, key: existing ?? key, fields })
      if (existing !== undefined && !options.update) continue
      if ((fields?.includes('expires_at') ?? true) && (key.expiresAt ?? Infinity) > at + maxMs) {
        reader.addError(row.line, 'expires_at', `must be within ${formatDuration(maxMs)}, the store's limit`)
      }
      for (const error of keyErrors(row, key, existing, partner, modules, at)) {
        reader.addError(row.line, ...error)
      }
      if (existing === undefined) changes.push({ type: 'key.issued', key, scheme: row.scheme })
      else changes.push(...updateChanges(existing, key, fields!))
    }
    report = { lines: changedLines, unchanged: rows.length - changedLines.length }
    return options.dryRun || !reader.isValid() ? [] : changes
  })
  return reader.errors() ?? report
}

/** Reads the valid lines of an import. The reader collects the errors of the others. */
async function readRows(
  lines: Iterable<string> | AsyncIterable<string>,
  reader: ObjectReader<KeyLine>,
  options: KeyImportOptions,
  sha256: Sha256,
): Promise<Row[]> {
  const rows: Row[] = []
  let line = 0
  for await (const text of lines) {
    line++
    const row = reader.read(text)
    if (row === undefined) continue
    const scheme = schemeOf(row, options, sha256)
    if (Array.isArray(scheme)) {
      reader.addError(line, ...scheme)
      continue
    }
    const digest = decodeDigest(row.digest)!
    rows.push({ ...row, digest, line, scheme, stored: `${scheme.id}:${digest}` })
    if (rows.length <= MAX_IMPORTED_KEYS) continue
    reader.addError(line, null, `is key ${rows.length}, and an import has at most ${MAX_IMPORTED_KEYS}`)
    break
  }
  return rows
}

interface Row extends KeyLine {
  readonly line: number
  readonly scheme: DigestScheme
  /** The digest as it is stored. */
  readonly stored: string
}

type FieldError = [field: string | null, reason: string]

/** The scheme of a line. Its id follows from it, so that equal digests are equal when they are imported again. */
function schemeOf(
  row: KeyLine,
  { secret = new Uint8Array(), ...defaults }: KeyImportOptions,
  sha256: Sha256,
): DigestScheme | FieldError {
  const algorithm = row.algorithm ?? defaults.algorithm
  const prefix = row.prefix ?? defaults.prefix ?? ''
  if (algorithm === undefined) return ['algorithm', 'is missing, and the import names none']
  if (!/^[!-+\--~]{0,64}$/.test(prefix)) {
    return ['prefix', 'must have up to 64 visible ASCII characters and no comma']
  }
  if (algorithm === 'hmac-sha256' && secret.length < minSecretBytes) {
    return ['algorithm', `needs a secret of ${minSecretBytes} bytes or more, not of ${secret.length}`]
  }
  const members = { algorithm, prefix, secret: algorithm === 'sha256' ? '' : toHex(secret) }
  return { id: sha256(JSON.stringify(Object.values(members))).slice(0, 16), ...members }
}

/** What rows are compared with. */
interface ImportTarget {
  /** The partners that are not removed, by slug. */
  readonly partners: ReadonlyMap<string, Partner>
  /** The keys with digests of the import, by these. */
  readonly keys: ReadonlyMap<string, Key>
  /** The ids of those in use. */
  readonly schemes: Set<string>
  /** The first line of each digest so far. */
  readonly firstLines: Map<string, number>
}

async function readTarget(
  store: Pick<Store, 'findDigests' | 'listPartners'>,
  rows: readonly Row[],
): Promise<ImportTarget> {
  const partners = new Map<string, Partner>()
  for await (const each of readPartners(store)) if (each.state !== 'removed') partners.set(each.slug, each)
  const found = await store.findDigests(rows.map(({ digest }) => digest))
  return {
    partners,
    keys: new Map(found.keys.map((key) => [key.digest.slice(-64), key])),
    schemes: new Set(found.schemes),
    firstLines: new Map(),
  }
}

/** The conflicts of a row with those before it. */
function* conflictsOf({ line, digest, scheme }: Row, target: ImportTarget): Generator<FieldError> {
  const { firstLines, schemes } = target
  const first = firstLines.get(digest)
  firstLines.set(digest, first ?? line)
  if (first !== undefined) yield ['digest', `repeats that of line ${first}`]
  if (schemes.size < maxSchemes) schemes.add(scheme.id)
  else if (!schemes.has(scheme.id)) {
    const needed = 'needs another combination of algorithm, prefix and secret'
    yield [null, `${needed}, and a store has at most ${maxSchemes}`]
  }
}

/** Why a row cannot be the existing key with its digest or, without one, a new key. */
function mismatchOf(
  row: Row,
  existing: Key | undefined,
  partner: Partner | undefined,
): FieldError | undefined {
  if (existing === undefined) {
    const expected = 'must be a partner that exists and is not removed'
    return partner === undefined ? ['partner', `${expected}, not ${formatValue(row.partner)}`] : undefined
  }
  if (existing.digest !== row.stored || existing.partner !== row.partner) {
    const scheme = existing.digest === row.stored ? '' : ', under another algorithm, prefix or secret'
    return ['digest', `is that of key ${existing.id} of ${existing.partner}${scheme}`]
  }
  return (row.environment ?? existing.environment) === existing.environment
    ? undefined
    : ['environment', `must be ${existing.environment}, which is that of key ${existing.id}`]
}

function* keyErrors(
  row: Row,
  key: Key,
  existing: Key | undefined,
  partner: Partner | undefined,
  modules: Modules,
  now: number,
): Generator<FieldError> {
  if ((row.expiresAt ?? Infinity) <= now) yield ['expires_at', 'must be in the future']
  if ((row.createdAt ?? 0) > now) yield ['created_at', 'must not be in the future']
  if ((row.lastUsedAt ?? 0) > now) yield ['last_used_at', 'must not be in the future']
  const missing = key.scopes.filter((scope) => !existing?.scopes.includes(scope))
  const [inactive] = inactiveScopes({ modules: partner?.modules ?? [] }, missing, modules)
  if (inactive !== undefined) {
    yield ['scopes', `has ${inactive}, which no active module of ${row.partner} needs`]
  }
  if (existing && hasEnded(existing, now)) {
    yield [null, `differs from key ${existing.id}, which is ${keyState(existing, now)}`]
  }
}

/** Digests that are certainly none of a key: one byte repeated, and SHA-256 of the empty text. */
const placeholders = /^(?:(..)\1*|e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855)$/

/** A line, whose members are in snake case there. */
type KeyLine =
  & Pick<Key, 'partner' | 'name' | 'digest'>
  & Optional<Pick<DigestScheme, 'algorithm' | 'prefix'>>
  & Optional<Pick<Key, 'scopes' | 'environment' | 'createdAt' | 'expiresAt' | 'lastUsedAt'>>
  & Optional<Pick<Key, 'allow' | 'hint' | 'owner' | 'tags'>>
  & { readonly limits: readonly (Limit & { readonly policy: KeyPolicyName })[] | undefined }
type Optional<T> = { readonly [Name in keyof T]: T[Name] | undefined }

const hintName = 'the last four characters of the key'
const digestName = 'SHA-256 in hexadecimal or base64'
const tagName = 'a tag (1–40 of a-z, 0-9, -, _ and ., a letter or digit first)'

/** The schema of a line. Messages do not show values that may contain a key by mistake. */
function lineSchema({ scopes }: Modules): Schema<KeyLine> {
  const limit = object({
    policy: LINE.oneOf(KEY_POLICY_NAMES, KEY_POLICY_NAMES.join(', ')),
    quota: LINE.integer(0, MAX_QUOTA),
    windowSeconds: LINE.integer(1, MAX_WINDOW_SECONDS),
  })
  return v.object({
    partner: LINE.code(SLUG),
    name: checkedText('text', (text) => findNameProblem(text)),
    digest: secretText(digestName, (text) => {
      const digest = decodeDigest(text)
      if (digest === undefined) return `must be ${digestName}`
      return placeholders.test(digest) ? 'must not be a placeholder' : undefined
    }),
    algorithm: optional(LINE.oneOf(['sha256', 'hmac-sha256'], 'sha256 or hmac-sha256')),
    prefix: optional(secretText('text', () => undefined)),
    scopes: optional(
      LINE.list(
        scopes.length,
        LINE.oneOf(scopes, 'a scope'),
        (names) => findRepeated(names, 'repeats a scope'),
      ),
    ),
    environment: optional(LINE.oneOf(['live', 'test'], 'live or test')),
    createdAt: optional(LINE.instant),
    expiresAt: optional(LINE.instant),
    lastUsedAt: optional(LINE.instant),
    allow: optional(LINE.list(100, checkedText('text', findRangeProblem))),
    limits: optional(LINE.list(
      KEY_POLICY_NAMES.length,
      limit,
      (limits) => findRepeated(limits.map((each) => each?.policy), 'repeats a policy'),
    )),
    hint: optional(secretText(
      hintName,
      (text) => /^[!-~]{4}$/.test(text) ? undefined : `must be ${hintName}`,
    )),
    owner: optional(checkedText('text', (text) => findNameProblem(text))),
    tags: optional(LINE.list(MAX_TAGS, LINE.code(form(tagName, (text) => TAG_PATTERN.test(text))))),
  })
}

function findRepeated(values: readonly string[], error: string): readonly [string, number] | undefined {
  const index = values.findIndex((value, index) => value !== undefined && values.indexOf(value) < index)
  return index < 0 ? undefined : [error, index]
}

/** @returns 64 hexadecimal digits; `undefined` unless the text has 32 bytes in hexadecimal, base64 or base64url. */
function decodeDigest(text: string): string | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase()
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return toHex(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function differingFields(existing: Key, key: Key): readonly string[] {
  const sorted = (values: readonly string[]) => values.toSorted().join()
  const isDifferent = {
    name: key.name !== existing.name,
    scopes: sorted(key.scopes) !== sorted(existing.scopes),
    expires_at: key.expiresAt !== existing.expiresAt,
    allow: sorted(key.allow) !== sorted(existing.allow),
    limits: !equalLimits(key.limits, existing.limits),
    owner: key.owner !== existing.owner,
    tags: sorted(key.tags) !== sorted(existing.tags),
  }
  return Object.entries(isDifferent).filter(([, differs]) => differs).map(([field]) => field)
}

function updateChanges({ id, scopes: before }: Key, key: Key, fields: readonly string[]): readonly Change[] {
  const { scopes, name, allow, limits, expiresAt, owner, tags } = key
  const changed = [...new Set([...before, ...scopes])]
    .filter((scope) => scopes.includes(scope) !== before.includes(scope))
  const updated: Change = { type: 'key.updated', id, name, allow, limits, expiresAt, owner, tags }
  return [
    ...fields.join() === 'scopes' ? [] : [updated],
    ...changed.map((scope): Change => (
      { type: scopes.includes(scope) ? 'scope.granted' : 'scope.removed', id, scope }
    )),
  ]
}

/** @param absent For a line without them. */
function toKey(row: Row, absent: Pick<Key, 'scopes'> & KeyDetails, now: number): Key {
  const { partner, name, environment = 'live', stored: digest, hint = '', allow = [] } = row
  const { scopes = absent.scopes, createdAt = now, expiresAt, lastUsedAt } = row
  const limits = Object.fromEntries(row.limits?.map(({ policy, ...limit }) => [policy, limit]) ?? [])
  const identity = { id: drawKeyId(), partner, name, environment, digest, hint }
  const details = changeDetails(NO_KEY_DETAILS, row, absent)
  return newKey({ ...identity, scopes, allow, limits, createdAt, expiresAt, lastUsedAt, ...details })
}
