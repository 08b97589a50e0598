/** Imports keys of another system as digests, so that no partner needs a new key. */
import * as v from 'valibot'
import { customCheck, instant, integer, list, mustBe, slug, strictFields } from '../content/fields.ts'
import { createObjectReader, type LineErrors } from '../content/line-reader.ts'
import { formatValue } from '../http/redact.ts'
import { drawKeyId } from '../keys/format.ts'
import { readPages } from '../lib/read-pages.ts'
import { MAX_QUOTA, MAX_WINDOW_SECONDS, OVERRIDABLE_LIMITS } from '../limits/policies.ts'
import type { Key, Partner } from '../model.ts'
import { moduleForScope, MODULES, SCOPES } from '../policy/modules.ts'
import type { Change, DigestScheme } from '../ports/changes.ts'
import type { Store } from '../ports/store.ts'
import { createAdministrator, type Operator } from './apply.ts'
import { validateName, validateRange } from './validate.ts'

/** The most keys of one import: other changes wait for their transaction. */
export const MAX_IMPORTED_KEYS = 50_000

/** A look-up computes a digest for each. */
const maxSchemes = 8

/** 128 bits: a digest reveals a secret with fewer. */
const minSecretBytes = 16

/** Options of `importKeys`. */
export interface KeyImportOptions {
  /** For lines without an algorithm. */
  readonly algorithm?: DigestScheme['algorithm'] | undefined
  /** For lines without a prefix. Default: empty, for digests of whole keys. */
  readonly prefix?: string | undefined
  /** The bytes of the HMAC secret, 16 or more. The store keeps it. */
  readonly secret?: Uint8Array | undefined
  /** Only check the lines. */
  readonly dryRun?: boolean | undefined
}

/** What an import of keys did, or would do; or the errors because of which nothing was written. */
export type KeyImportOutcome = KeyImportReport | LineErrors

/** What an import of keys did, or would do. */
export interface KeyImportReport {
  /** The new keys, each with the number of its line. */
  readonly issued: readonly { readonly line: number; readonly key: Key }[]
  /** The number of keys that their partner has already. They stay as they are. */
  readonly unchanged: number
}

/**
 * Imports keys as JSON Lines, all or nothing, in one transaction.
 *
 * @param lines 50,000 at most, with or without line ends.
 * @throws {AdminError} `concurrent_change`
 */
export async function importKeys(
  store: Pick<Store, 'revision' | 'clock' | 'apply' | 'findDigests' | 'listPartners' | 'sha256'>,
  lines: Iterable<string> | AsyncIterable<string>,
  operator: Operator,
  { secret = new Uint8Array(), dryRun = false, ...defaults }: KeyImportOptions = {},
): Promise<KeyImportOutcome> {
  const { now, apply } = createAdministrator(store, operator)
  const reader = createObjectReader(keySchema)
  const { addError } = reader
  const rows: (KeyLine & { line: number; scheme: DigestScheme; stored: string })[] = []
  let report: KeyImportReport = { issued: [], unchanged: 0 }
  let line = 0

  for await (const text of lines) {
    line++
    const row = reader.read(text)
    const scheme = row && schemeOf(row)
    if (scheme !== undefined) rows.push({ ...row!, line, scheme, stored: `${scheme.id}:${row!.digest}` })
    if (rows.length <= MAX_IMPORTED_KEYS) continue
    addError(line, null, `is key ${rows.length}, and an import has at most ${MAX_IMPORTED_KEYS}`)
    break
  }

  /** The scheme of a line. Its id follows from it, so that equal digests are equal when they are imported again. */
  function schemeOf(row: KeyLine): DigestScheme | undefined {
    const algorithm = row.algorithm ?? defaults.algorithm
    const prefix = row.prefix ?? defaults.prefix ?? ''
    if (algorithm === undefined) addError(line, 'algorithm', 'is missing, and --algorithm was not passed')
    else if (!/^[!-+\--~]{0,64}$/.test(prefix)) {
      addError(line, 'prefix', 'must have up to 64 visible ASCII characters and no comma')
    } else if (algorithm === 'hmac-sha256' && secret.length < minSecretBytes) {
      const needed = `needs a secret of ${minSecretBytes} bytes or more in --secret-file FILE`
      addError(line, 'algorithm', `${needed}, not of ${secret.length}`)
    } else {
      const members = { algorithm, prefix, secret: algorithm === 'sha256' ? '' : toHex(secret) }
      return { id: store.sha256(JSON.stringify(Object.values(members))).slice(0, 16), ...members }
    }
    return undefined
  }

  async function check(): Promise<readonly Change[]> {
    const partners = new Map<string, Partner>()
    for await (const each of readPages<Partner>((after, limit) => store.listPartners(after?.slug, limit))) {
      if (each.state !== 'removed') partners.set(each.slug, each)
    }
    const existing = await store.findDigests(rows.flatMap(({ stored, digest }) => [stored, digest]))
    const keys = new Map(existing.keys.map((key) => [key.digest, key]))
    const schemes = new Set(existing.schemes)
    const firstLines = new Map<string, number>()
    const issued: { line: number; key: Key; scheme: DigestScheme }[] = []
    const at = now()
    let unchanged = 0

    for (const { line, scheme, stored, ...row } of rows) {
      const first = firstLines.get(stored)
      firstLines.set(stored, first ?? line)
      if (first !== undefined) addError(line, 'digest', `repeats that of line ${first}`)
      if (schemes.size < maxSchemes) schemes.add(scheme.id)
      else if (!schemes.has(scheme.id)) {
        const needed = 'needs another combination of algorithm, prefix and secret'
        addError(line, null, `${needed}, and a store has at most ${maxSchemes}`)
      }
      const key = keys.get(stored) ?? keys.get(row.digest)
      const partner = partners.get(row.partner)
      if (key?.digest === stored && key.partner === row.partner) unchanged++
      else if (key !== undefined) addError(line, 'digest', `is that of key ${key.id} of ${key.partner}`)
      else if (partner === undefined) {
        const expected = 'must be a partner that exists and is not removed'
        addError(line, 'partner', `${expected}, not ${formatValue(row.partner)}`)
      } else {
        if ((row.expires_at ?? Infinity) <= at) addError(line, 'expires_at', 'must be in the future')
        if ((row.created_at ?? 0) > at) addError(line, 'created_at', 'must not be in the future')
        if ((row.last_used_at ?? 0) > at) addError(line, 'last_used_at', 'must not be in the future')
        const inactive = row.scopes?.find((scope) => !partner.modules.includes(moduleForScope(scope)))
        if (inactive !== undefined) {
          addError(line, 'scopes', `has ${inactive}, which no active module of ${partner.slug} needs`)
        }
        issued.push({ line, scheme, key: toKey(row, partner, stored, at) })
      }
    }
    report = { issued, unchanged }
    return dryRun || !reader.isValid()
      ? []
      : issued.map(({ key, scheme }) => ({ type: 'key.issued', key, scheme }))
  }

  await apply(check)
  return reader.errors() ?? report
}

/** SHA-256 of the empty text. */
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

// Messages do not show values that may contain a key by mistake.
const digestError = 'must be SHA-256 in hexadecimal or base64'
const hintError = 'must be the last four characters of the key'

const keySchema = strictFields({
  partner: slug(),
  name: v.pipe(v.string(mustBe('text')), customCheck(validateName)),
  digest: v.pipe(
    v.string(digestError),
    v.transform(decodeDigest),
    v.string(digestError),
    v.check((digest) => digest !== emptyDigest && !/^(..)\1*$/.test(digest), 'must not be a placeholder'),
  ),
  algorithm: v.nullish(v.picklist(['sha256', 'hmac-sha256'], mustBe('sha256 or hmac-sha256'))),
  prefix: v.nullish(v.string('must be text')),
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
  hint: v.nullish(v.pipe(v.string(hintError), v.regex(/^[!-~]{4}$/, hintError))),
})

type KeyLine = Readonly<v.InferOutput<typeof keySchema>>

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

function toKey(row: KeyLine, partner: Partner, digest: string, now: number): Key {
  const limits =
    row.limits?.map(({ policy, quota, window_seconds: windowSeconds }) =>
      [policy, { quota, windowSeconds }] as const
    ) ?? []
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
    limits: Object.fromEntries(limits),
    createdAt: row.created_at ?? now,
    expiresAt: row.expires_at ?? undefined,
    retiresAt: undefined,
    successorId: undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  }
}
