import {
  type AppliedChanges,
  applyChanges,
  endedAccess,
  requireEndsKept,
  type StoredFacts,
} from '../../../core/admin/change-set.ts'
import { all, andThen } from '../../../core/lib/promise.ts'
import type { KeyState, Module } from '../../../core/model.ts'
import type { Administration, Change, CreationPosition, KeyFilter } from '../../../core/ports/changes.ts'
import type { FactSource } from '../../../core/ports/facts.ts'
import { changeEvents } from '../../../core/webhooks/events.ts'
import { digestsOf, sha256 } from '../../digest.ts'
import {
  type Dialect,
  idsSql,
  idsText,
  query,
  rowsSql,
  type SqlDatabase,
  upsertRowsSql,
  type Work,
  writeRows,
} from './database.ts'
import { includesWord, type SqlValue, type StoredRow } from './row-format.ts'
import { CLAIMS, DIGEST_SCHEMES, KEY_FACTS_COLUMNS, KEYS, MODULES, PARTNERS, readKeyFacts } from './tables.ts'

const selectPartners = `SELECT ${PARTNERS.columns} FROM partner_api.partner`
const selectKeys = `SELECT ${KEYS.columns} FROM partner_api.partner_key`
const selectClaims = `SELECT ${CLAIMS.columns} FROM partner_api.claim`
export const SELECT_MODULES = `SELECT ${MODULES.columns} FROM partner_api.module ORDER BY position`
const selectSchemes = `SELECT ${DIGEST_SCHEMES.columns} FROM partner_api.digest_scheme ORDER BY id`
/** The few entries that the index by partner and type finds. */
const selectStoreUpdate = `
  SELECT after FROM partner_api.audit WHERE partner IS NULL AND type = 'store.updated'
  ORDER BY sequence + 0 DESC LIMIT 1`
export const SELECT_FACTS = `
  SELECT ${KEY_FACTS_COLUMNS} FROM partner_api.partner_key k JOIN partner_api.partner p ON p.slug = k.partner`

/** The position before all keys and claims, even those of other programs: a text, as no number is the least bigint. */
const firstKeyPosition = { createdAt: String(-(2n ** 63n)), id: '' }

const selectOthersChange = `
  SELECT 1 FROM partner_api.audit WHERE key_id = $1 AND type <> 'key.issued' AND actor <> $2 LIMIT 1`

export function createAdministration(
  { dialect, lookUp, read, change }: SqlDatabase,
): Omit<Administration, 'listKeys'> {
  const ids = idsSql(dialect, '$1')
  return {
    listPartners(after = '', limit, tag) {
      const [condition, parameters] = tag === undefined
        ? ['', []]
        : [` AND ${includesWord('tags', '$3')}`, [tag]]
      const sql = `${selectPartners} WHERE slug > $1${condition} ORDER BY slug LIMIT CAST($2 AS BIGINT)`
      return andThen(read(sql, [after, limit, ...parameters]), (rows) => rows.map(PARTNERS.read))
    },

    findPartner: (slug) =>
      andThen(read(`${selectPartners} WHERE slug = $1`, [slug]), ([row]) => row && PARTNERS.read(row)),

    maxKeyLifetimeMs: () =>
      andThen(read<[string]>(selectStoreUpdate), ([[after] = ['{}']]) => JSON.parse(after).maxKeyLifetimeMs),

    listChain: (id, since, now) =>
      andThen(read(selectChain, [id, since, now]), (rows) => rows.map(KEYS.read)),

    wasChangedByOthers: (id, actor) =>
      andThen(read(selectOthersChange, [id, actor]), ([row]) => row !== undefined),

    findClaim: (id) =>
      andThen(lookUp(`${selectClaims} WHERE id = $1`, [id]), ([row]) => row && CLAIMS.read(row)),

    listClaims({ partner, openAt }, after = firstKeyPosition as never, limit) {
      const open = openAt === undefined ? '' : ` AND state = 'open'`
      const sql = `${selectClaims} WHERE (created_at, id) > ($1, $2) AND expires_at > $4${open}
        AND partner = COALESCE(CAST($5 AS TEXT), partner) ORDER BY created_at, id LIMIT CAST($3 AS BIGINT)`
      const parameters = [after.createdAt, after.id, limit, openAt ?? 0, partner ?? null]
      return andThen(read(sql, parameters), (rows) => rows.map(CLAIMS.read))
    },

    findDigests: (digests) =>
      all([
        read(selectSchemes),
        read(`${selectKeys} WHERE substr(digest, length(digest) - 63) IN ${ids}`, [idsText(digests)]),
      ], ([schemes, keys]) => (
        { schemes: schemes.map((row) => DIGEST_SCHEMES.read(row).id), keys: keys.map(KEYS.read) }
      )),

    apply: (changes, ifFacts, context) =>
      change('facts', context, function* (facts) {
        if (facts !== ifFacts) return { result: false, auditRecords: [] }
        const changed = yield* applyFacts(dialect, changes, context.at)
        return {
          result: true,
          auditRecords: changed.auditRecords,
          events: () => changeEvents(changed, context),
        }
      }),
  }
}

const hasNotEnded = '(expires_at IS NULL OR expires_at > :now) AND (retires_at IS NULL OR retires_at > :now)'
const inForce = `state = 'active' AND ${hasNotEnded}`

const stateConditions: Readonly<Record<KeyState, string>> = {
  active: `${inForce} AND retires_at IS NULL`,
  retiring: `${inForce} AND retires_at IS NOT NULL`,
  disabled: `state = 'disabled' AND ${hasNotEnded}`,
  expired: `state <> 'revoked' AND (state = 'retired' OR expires_at <= :now OR retires_at <= :now)`,
  revoked: `state = 'revoked'`,
}

const selectChain = `
  WITH RECURSIVE older AS (
    SELECT id, predecessor_id, created_at FROM partner_api.partner_key WHERE id = $1
    UNION
    SELECT k.id, k.predecessor_id, k.created_at FROM older
    JOIN partner_api.partner_key AS k ON k.id = older.predecessor_id
    WHERE older.created_at > $2 OR ${inForce.replaceAll(':now', '$3')}
  ), chain AS (
    SELECT id FROM older
    UNION
    SELECT k.id FROM chain JOIN partner_api.partner_key AS k ON k.predecessor_id = chain.id
  )
  ${selectKeys} WHERE id IN (SELECT id FROM chain) AND ${inForce.replaceAll(':now', '$3')}
  ORDER BY created_at, id`

/**
 * Which keys a list has.
 *
 * @returns SQL conditions, each after an AND, and the parameters of the statement: the instant and the id of the
 * position, the limit, and those of the conditions.
 */
export function selectKeyList(
  filter: KeyFilter,
  after: CreationPosition | undefined,
  limit: number,
): { readonly conditions: string; readonly parameters: readonly SqlValue[] } {
  const { createdAt, id } = after ?? firstKeyPosition
  const parameters: SqlValue[] = [createdAt, id, limit]
  const conditions = keyConditions(filter, (value) => `$${parameters.push(value)}`)
  return { conditions, parameters }
}

/**
 * The conditions of a filter, each after an AND.
 *
 * @param parameter Adds a parameter to the statement and returns its placeholder.
 */
function keyConditions(filter: KeyFilter, parameter: (value: SqlValue) => string): string {
  const { partner, environment, scope, tag, states, endsBefore, unusedSince, now = Date.now() } = filter
  const conditions: string[] = []
  if (partner !== undefined) conditions.push(`partner = ${parameter(partner)}`)
  if (environment !== undefined) conditions.push(`environment = ${parameter(environment)}`)
  if (scope !== undefined) conditions.push(includesWord('scopes', parameter(scope)))
  if (tag !== undefined) conditions.push(includesWord('tags', parameter(tag)))
  if (states !== undefined) {
    conditions.push(states.map((state) => stateConditions[state]).join(' OR ') || 'FALSE')
  }
  if (endsBefore !== undefined) {
    const end = parameter(endsBefore)
    conditions.push(`${inForce} AND (expires_at < ${end} OR retires_at < ${end})`)
  }
  if (unusedSince !== undefined) {
    const since = parameter(unusedSince)
    conditions.push(
      `${inForce} AND created_at < ${since} AND (last_used_at IS NULL OR last_used_at < ${since})`,
    )
  }
  const sql = conditions.map((condition) => ` AND (${condition})`).join('')
  return sql.includes(':now') ? sql.replaceAll(':now', parameter(now)) : sql
}

/** Applies changes in a transaction, except for their audit records and events. */
export function* applyFacts(dialect: Dialect, changes: readonly Change[], at: number): Work<AppliedChanges> {
  const changed = applyChanges(yield* loadFacts(dialect, changes), changes, sha256)
  yield* writeFacts(dialect, changed, at)
  const { slugs, ids } = endedAccess(changed)
  requireEndsKept(changed, yield* readFacts(dialect, slugs, ids))
  return changed
}

/** Loads everything that the changes refer to. */
function loadFacts(dialect: Dialect, changes: readonly Change[]): Work<StoredFacts> {
  const slugs = new Set<string>()
  const ids = new Set<string>()
  const removed = new Set<string>()
  const modules = new Set<Module>()
  for (const change of changes) {
    if (change.type === 'partner.created') slugs.add(change.partner.slug)
    else if (change.type === 'key.issued') {
      slugs.add(change.key.partner)
      ids.add(change.key.id)
    } else if (change.type === 'module.defined') modules.add(change.module.name)
    else if (change.type === 'module.forgotten') modules.add(change.name)
    else if ('slug' in change) slugs.add(change.slug)
    else if ('id' in change) ids.add(change.id)
    if (change.type === 'partner.removed') removed.add(change.slug)
    if (change.type === 'key.rotated') ids.add(change.successorId)
  }
  return readFacts(dialect, slugs, ids, removed, modules)
}

/**
 * Reads partners and keys.
 *
 * @param removed Partners whose unrevoked keys are read, too.
 * @param modules Names of modules to read, and of all keys that hold their scopes.
 */
function* readFacts(
  dialect: Dialect,
  slugs: Iterable<string>,
  ids: Iterable<string>,
  removed: Iterable<string> = [],
  modules: ReadonlySet<Module> = new Set(),
): Work<StoredFacts> {
  const partners = yield* readByIds(`${selectPartners} WHERE slug IN ${idsSql(dialect, '$1')}`, slugs)
  const keys = yield* readByIds(`${selectKeys} WHERE id IN ${idsSql(dialect, '$1')}`, ids)
  for (const partner of removed) {
    keys.push(...yield* query(`${selectKeys} WHERE partner = $1 AND state <> 'revoked'`, [partner]))
  }
  const known = modules.size === 0 ? [] : (yield* query(SELECT_MODULES)).map(MODULES.read)
  const read = known.filter(({ name }) => modules.has(name))
  for (const { scope } of read) {
    keys.push(...yield* query(`${selectKeys} WHERE ${includesWord('scopes', '$1')}`, [scope]))
  }
  return {
    partners: new Map(partners.map(PARTNERS.read).map((partner) => [partner.slug, partner])),
    keys: new Map(keys.map(KEYS.read).map((key) => [key.id, key])),
    modules: new Map(read.map((module) => [module.name, module])),
  }
}

function* readByIds(sql: string, ids: Iterable<string>): Work<StoredRow[]> {
  const listed = [...ids]
  return listed.length === 0 ? [] : yield* query(sql, [idsText(listed)])
}

const deleteModule = 'DELETE FROM partner_api.module WHERE name = $1'
const insertModule = `
  INSERT INTO partner_api.module (name, scope, feature, position)
  SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), COALESCE(MAX(position), 0) + 1 FROM partner_api.module`

function* writeFacts(dialect: Dialect, changed: AppliedChanges, at: number): Work<void> {
  const { modules, partners, schemes, keys, claims, auditRecords } = changed
  for (const [name, module] of modules) {
    yield* module === undefined ? query(deleteModule, [name]) : query(insertModule, MODULES.values(module))
  }
  yield* writeRows(upsertRowsSql(dialect, 'partner', PARTNERS.columns), PARTNERS, partners.values())
  yield* writeRows(upsertRowsSql(dialect, 'digest_scheme', DIGEST_SCHEMES.columns), DIGEST_SCHEMES, schemes)
  // Other processes may have recorded uses since the row was read.
  const upsertKeys = upsertRowsSql(dialect, 'partner_key', KEYS.columns, { preserved: ['last_used_at'] })
  yield* writeRows(upsertKeys, KEYS, keys.values())
  yield* writeRows(upsertRowsSql(dialect, 'claim', CLAIMS.columns), CLAIMS, claims)
  const revoked = auditRecords.filter(({ type }) => type === 'key.revoked').map(({ keyId }) => keyId!)
  if (revoked.length === 0) return
  yield* query(
    `UPDATE partner_api.partner_key SET revoked_at = CAST($2 AS BIGINT)
    WHERE id IN ${idsSql(dialect, '$1')} AND revoked_at IS NULL`,
    [idsText(revoked), at],
  )
}

export function createKeyLookup({ dialect, lookUp, write }: SqlDatabase) {
  const selectKey = `${SELECT_FACTS} WHERE k.id = $1`
  // With the condition of the index.
  const selectImported = `${SELECT_FACTS} WHERE k.digest IN ${
    idsSql(dialect, '$1')
  } AND length(k.digest) > 64`
  // Processes lock in one order, which prevents deadlocks. A use in the future was recorded by a clock that was ahead.
  const updateLastUsed = `
    UPDATE partner_api.partner_key AS k SET last_used_at = used.at FROM (
      SELECT known.id, given.at FROM ${rowsSql(dialect, ['id', 'at'])} AS given
      CROSS JOIN partner_api.partner_key AS known
      WHERE known.id = given.id AND (known.last_used_at IS NULL OR known.last_used_at < given.at
        OR known.last_used_at > (SELECT ${dialect.now}))
      ORDER BY known.id ${dialect.forUpdate && 'FOR NO KEY UPDATE OF known'}
    ) AS used WHERE k.id = used.id`

  return {
    listModules: () => andThen(lookUp(SELECT_MODULES), (rows) => rows.map(MODULES.read)),

    findKey: (id) => andThen(lookUp(selectKey, [id]), ([row]) => row && readKeyFacts(row)),

    findImportedKey: (text) =>
      andThen(lookUp(selectSchemes), (schemes) => {
        if (schemes.length === 0) return false
        const digests = digestsOf(text, schemes.map(DIGEST_SCHEMES.read))
        return andThen(lookUp(selectImported, [idsText(digests)]), (rows) => {
          const found = rows.map(readKeyFacts)
          return digests.map((digest) => found.find(({ key }) => key.digest === digest))
            .find((facts) => facts !== undefined)
        })
      }),

    recordKeyUses(uses) {
      if (uses.size === 0) return
      return andThen(write(updateLastUsed, [JSON.stringify([...uses])]), () => undefined)
    },
  } satisfies Pick<FactSource, 'listModules' | 'findKey' | 'findImportedKey' | 'recordKeyUses'>
}
