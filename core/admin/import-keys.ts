/** Imports keys of another system as digests, so that no partner needs a new key. */
import * as v from 'valibot'
import { customCheck, instant, integer, list, mustBe, slug, strictFields } from '../content/fields.ts'
import { createObjectReader, type LineErrors } from '../content/line-reader.ts'
import { formatValue } from '../http/redact.ts'
import { drawKeyId } from '../keys/format.ts'
import { parseCidr } from '../lib/ip-address.ts'
import { readPages } from '../lib/read-pages.ts'
import { MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../limits/policies.ts'
import type { Environment, Key, OverridableLimit, Partner } from '../model.ts'
import { moduleForScope, MODULES, type Scope, SCOPES } from '../policy/modules.ts'
import type { Change, DigestScheme } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { createAdministrator, type Operator } from './apply.ts'
import { AdminError, validateName } from './validate.ts'

/** The most keys of one import: their transaction keeps other changes waiting. */
export const MAX_IMPORTED_KEYS = 50_000

/** What is hashed in front of each look-up is bounded. */
const maxSchemes = 8

/** 128 bits: with fewer, a digest lets anyone find the secret. */
const minSecretBytes = 16

/** The algorithms of digests that can be imported. */
export const DIGEST_ALGORITHMS = ['sha256', 'hmac-sha256'] as const

/** The form of what precedes the digested part of a key. */
export const DIGEST_PREFIX_PATTERN: RegExp = /^[!-+\--~]{0,64}$/

/** Options of `importKeys`. */
export interface KeyImportOptions {
  /** For lines without an algorithm. */
  readonly algorithm?: DigestScheme['algorithm'] | undefined
  /** For lines without a prefix: up to 64 visible ASCII characters without a comma. Default: the whole key is digested. */
  readonly prefix?: string | undefined
  /** The bytes of the HMAC secret, 16 or more. The store keeps it. */
  readonly secret?: Uint8Array | undefined
  /** Only check the lines. */
  readonly dryRun?: boolean | undefined
}

/** The result of an import of keys, or the errors because of which nothing was written. */
export type KeyImportOutcome = KeyImportReport | LineErrors

/** What an import of keys did, or would do. */
export interface KeyImportReport {
  /** The new keys, each with the number of its line. */
  readonly issued: readonly { readonly line: number; readonly key: Key }[]
  /** The number of keys that the partner had already. They are left as they are. */
  readonly unchanged: number
}

/**
 * Imports keys as JSON Lines, all or nothing, in one transaction.
 *
 * @param lines 50,000 at most, with or without line ends.
 * @throws {AdminError} `invalid_secret`, `concurrent_change`
 */
export async function importKeys(
  store: Pick<Store, 'revision' | 'clock' | 'apply' | 'findDigests' | 'listPartners' | 'sha256'>,
  lines: Iterable<string> | AsyncIterable<string>,
  operator: Operator,
  { secret, dryRun = false, ...defaults }: KeyImportOptions = {},
): Promise<KeyImportOutcome> {
  if (secret !== undefined && secret.length < minSecretBytes) {
    throw new AdminError(
      'invalid_secret',
      `The HMAC secret has ${secret.length} bytes and must have at least ${minSecretBytes}.`,
    )
  }
  const secretHex = Array.from(secret ?? [], (byte) => byte.toString(16).padStart(2, '0')).join('')
  const { now, apply } = createAdministrator(store, operator)
  const rows: Row[] = []
  const reader = createObjectReader(keySchema)
  const { addError } = reader
  let report: KeyImportReport = { issued: [], unchanged: 0 }

  let line = 0
  for await (const text of lines) {
    line++
    const row = reader.read(text)
    if (row === undefined) continue
    rows.push({ ...row, line })
    if (rows.length <= MAX_IMPORTED_KEYS) continue
    addError(line, null, `is key ${rows.length}, and an import has at most ${MAX_IMPORTED_KEYS}`)
    break
  }

  /** The scheme of a line, with an id that follows from it: equal digests of equal schemes are equal. */
  function schemeOf({ line, ...row }: Row): DigestScheme | undefined {
    const algorithm = row.algorithm ?? defaults.algorithm
    const prefix = row.prefix ?? defaults.prefix ?? ''
    if (algorithm === undefined) addError(line, 'algorithm', 'is missing, and --algorithm was not passed')
    else if (algorithm === 'sha256' || secret !== undefined) {
      const members = { algorithm, prefix, secret: algorithm === 'sha256' ? '' : secretHex }
      return { id: store.sha256(JSON.stringify(Object.values(members))).slice(0, 16), ...members }
    } else addError(line, 'algorithm', 'needs the HMAC secret: pass --secret-file FILE')
    return undefined
  }

  async function check(): Promise<readonly Change[]> {
    const digested = rows.flatMap((row) => {
      const scheme = schemeOf(row)
      return scheme === undefined ? [] : [{ ...row, scheme, stored: `${scheme.id}:${row.digest}` }]
    })
    const partners = new Map<string, Partner>()
    for await (
      const partner of readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))
    ) {
      partners.set(partner.slug, partner)
    }
    const existing = await store.findDigests(digested.flatMap(({ stored, digest }) => [stored, digest]))
    const keys = new Map(existing.keys.map((key) => [key.digest, key]))
    const schemes = new Set(existing.schemes)
    const firstLines = new Map<string, number>()
    const issued: { line: number; key: Key; scheme: DigestScheme }[] = []
    let unchanged = 0

    for (const { line, scheme, stored, ...row } of digested) {
      if (!schemes.has(scheme.id) && schemes.size >= maxSchemes) {
        addError(
          line,
          null,
          `needs another pair of algorithm and prefix, and a store has at most ${maxSchemes}`,
        )
        continue
      }
      schemes.add(scheme.id)
      const first = firstLines.get(stored)
      firstLines.set(stored, first ?? line)
      if (first !== undefined) addError(line, 'digest', `repeats that of line ${first}`)
      const key = keys.get(stored) ?? (scheme.algorithm === 'sha256' ? keys.get(row.digest) : undefined)
      if (key?.digest === stored && key.partner === row.partner) {
        unchanged++
        continue
      }
      if (key !== undefined) addError(line, 'digest', `is that of key ${key.id} of ${key.partner}`)
      const partner = partners.get(row.partner)
      if (partner === undefined || partner.state === 'removed') {
        addError(
          line,
          'partner',
          `must be a partner that exists and is not removed, not ${formatValue(row.partner)}`,
        )
        continue
      }
      const at = now()
      if ((row.expires_at ?? Infinity) <= at) addError(line, 'expires_at', 'must be in the future')
      for (const field of ['created_at', 'last_used_at'] as const) {
        if ((row[field] ?? 0) > at) addError(line, field, 'must not be in the future')
      }
      const inactive = row.scopes?.find((scope) => !partner.modules.includes(moduleForScope(scope)))
      if (inactive !== undefined) {
        addError(line, 'scopes', `has ${inactive}, which no active module of ${row.partner} needs`)
      }
      issued.push({ line, scheme, key: toKey(row, partner, stored, at) })
    }
    if (!reader.isValid()) return []
    report = { issued, unchanged }
    return dryRun ? [] : issued.map(({ key, scheme }) => ({ type: 'key.issued', key, scheme }))
  }

  await apply(check)
  return reader.errors() ?? report
}

interface KeyLine {
  readonly partner: string
  readonly name: string
  /** 64 lower-case hexadecimal digits. */
  readonly digest: string
  readonly algorithm?: DigestScheme['algorithm'] | null
  readonly prefix?: string | null
  readonly scopes?: readonly Scope[] | null
  readonly environment?: Environment | null
  readonly created_at?: number | null
  readonly expires_at?: number | null
  readonly last_used_at?: number | null
  readonly allow?: readonly string[] | null
  readonly limits?: readonly { policy: OverridableLimit; quota: number; window_seconds: number }[] | null
  readonly hint?: string | null
}

interface Row extends KeyLine {
  readonly line: number
}

/** Messages do not show values that may contain a key by mistake. */
const keySchema = strictFields({
  partner: slug(),
  name: v.pipe(v.string(mustBe('text')), customCheck(validateName)),
  digest: v.pipe(
    v.unknown(),
    v.rawTransform(({ dataset: { value }, addIssue, NEVER }) => {
      const digest = typeof value === 'string' ? decodeDigest(value) : undefined
      if (digest !== undefined && !/^(..)\1*$/.test(digest) && digest !== emptyDigest) return digest
      addIssue({
        message: digest === undefined
          ? 'must be a SHA-256 digest in hexadecimal or base64'
          : 'must be the digest of a secret, not of nothing or a placeholder',
      })
      return NEVER
    }),
  ),
  algorithm: v.nullish(v.picklist(DIGEST_ALGORITHMS, mustBe(DIGEST_ALGORITHMS.join(' or ')))),
  prefix: v.nullish(
    textOf(DIGEST_PREFIX_PATTERN, 'must have up to 64 visible ASCII characters and no comma'),
  ),
  scopes: v.nullish(list(v.picklist(SCOPES, mustBe('a scope')), SCOPES.length)),
  environment: v.nullish(v.picklist(['live', 'test'], mustBe('live or test'))),
  created_at: v.nullish(instant()),
  expires_at: v.nullish(instant()),
  last_used_at: v.nullish(instant()),
  allow: v.nullish(list(v.pipe(v.string(mustBe('text')), customCheck(validateRange)), 100)),
  limits: v.nullish(list(
    strictFields({
      policy: v.picklist(OVERRIDABLE_LIMITS, mustBe(OVERRIDABLE_LIMITS.join(', '))),
      quota: integer(0, MAX_QUOTA),
      window_seconds: integer(1, MAX_WINDOW_SECONDS),
    }),
    OVERRIDABLE_LIMITS.length,
  )),
  hint: v.nullish(textOf(/^[!-~]{4}$/, 'must be the last four characters of the key')),
}) as unknown as v.GenericSchema<unknown, KeyLine>

/** SHA-256 of the empty text. */
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

function textOf(form: RegExp, message: string): v.GenericSchema<unknown, string> {
  return v.pipe(v.string(message), v.regex(form, message))
}

function validateRange(range: string): string | undefined {
  try {
    parseCidr(range)
    return undefined
  } catch (error) {
    return (error as RangeError).message
  }
}

/** @returns 64 hexadecimal digits; `undefined` unless the text has 32 bytes in hexadecimal, base64 or base64url. */
function decodeDigest(text: string): string | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase()
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('')
}

function toKey(row: KeyLine, partner: Partner, digest: string, now: number): Key {
  const limits = row.limits?.map(({ policy, quota, window_seconds: windowSeconds }) =>
    [policy, { quota, windowSeconds }] as const
  )
  return {
    id: drawKeyId(),
    partner: partner.slug,
    name: row.name,
    environment: row.environment ?? 'live',
    digest,
    hint: row.hint ?? '',
    state: 'active',
    scopes: row.scopes ?? partner.modules.map((module) => MODULES[module].scope),
    allow: row.allow ?? [],
    limits: Object.fromEntries(limits ?? []),
    createdAt: row.created_at ?? now,
    expiresAt: row.expires_at ?? undefined,
    retiresAt: undefined,
    successorId: undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  }
}
