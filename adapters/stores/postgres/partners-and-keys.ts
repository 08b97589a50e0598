import { applyChanges, checkWritten, factsOf, type StoredFacts } from '../../../core/admin/change-set.ts'
import type { KeyFacts } from '../../../core/model.ts'
import type { Administration, Change } from '../../../core/ports/changes.ts'
import type { FactSource } from '../../../core/ports/facts.ts'
import { changeEvents } from '../../../core/webhooks/events.ts'
import { digestsOf, sha256 } from '../../digest.ts'
import { keyConditions } from '../key-filter.ts'
import type { StoredRow, Value } from '../row-format.ts'
import { DIGEST_SCHEMES, KEY_FACTS_COLUMNS, KEYS, PARTNERS, readKeyFacts } from '../tables.ts'
import { runAudited } from './audited-change.ts'
import type { Query } from './connection.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import { columnParameters, listText, upsertSql } from './sql.ts'

const selectPartners = `SELECT ${PARTNERS.columns} FROM partner_api.partner`
const selectKeys = `SELECT ${KEYS.columns} FROM partner_api.partner_key`

/** Before every key, those included that another program has added: text, since no number is the least bigint. */
const firstKeyPosition = { createdAt: String(-(2n ** 63n)), id: '' }

const selectSchemes = `SELECT ${DIGEST_SCHEMES.columns} FROM partner_api.digest_scheme ORDER BY id`

/** The removal of a partner changes all of its keys. */
const rowsPerStatement = 1000

const upsertPartners = upsertSql('partner', PARTNERS.columns)
const upsertSchemes = upsertSql('digest_scheme', DIGEST_SCHEMES.columns)
// Other processes may have recorded uses since the row was read.
const upsertKeys = upsertSql('partner_key', KEYS.columns, { preserved: ['last_used_at'] })

export function createAdministration(
  database: Database,
  revisions: Revisions,
) {
  return {
    async listPartners(after = '', limit) {
      const rows = await database.read<StoredRow>(
        `${selectPartners} WHERE slug > $1 ORDER BY slug LIMIT $2`,
        [after, limit],
      )
      return rows.map(PARTNERS.read)
    },

    async findPartner(slug) {
      const [row] = await database.read<StoredRow>(`${selectPartners} WHERE slug = $1`, [slug])
      return row && PARTNERS.read(row)
    },

    async listKeys(filter, after, limit) {
      const { createdAt, id } = after ?? firstKeyPosition
      const parameters: Value[] = [createdAt, id, limit]
      const conditions = keyConditions(filter, (value) => `$${parameters.push(value)}`)
      // The expression of its own index: the planner must not scan that for the keys of one partner.
      const order = filter.partner === undefined ? 'created_at + 0, id' : 'created_at, id'
      const rows = await database.read<StoredRow>(
        `${selectKeys} WHERE (${order}) > ($1::bigint, $2::text)${conditions}
        ORDER BY ${order} LIMIT $3`,
        parameters,
      )
      return rows.map(KEYS.read)
    },

    async findDigests(digests) {
      const [schemes, keys] = await Promise.all([
        database.read<StoredRow>(selectSchemes),
        database.read<StoredRow>(`${selectKeys} WHERE right(digest, 64) = ANY ($1::text[])`, [
          listText(digests),
        ]),
      ])
      return { schemes: schemes.map((row) => DIGEST_SCHEMES.read(row).id), keys: keys.map(KEYS.read) }
    },

    apply(changes, ifFacts, stamp) {
      return runAudited(database, revisions, 'facts', stamp, async (query, facts) => {
        if (facts !== ifFacts) return { result: false, auditRecords: [] }
        const changed = applyChanges(await loadFacts(query, changes), changes, sha256)
        const { partners, keys, schemes, auditRecords } = changed
        await writeRows(query, upsertPartners, Array.from(partners.values(), PARTNERS.values))
        await writeRows(query, upsertSchemes, schemes.map(DIGEST_SCHEMES.values))
        await writeRows(query, upsertKeys, Array.from(keys.values(), KEYS.values))
        const revoked = auditRecords.filter(({ type }) => type === 'key.revoked').map(({ keyId }) => keyId!)
        if (revoked.length > 0) {
          await query(
            'UPDATE partner_api.partner_key SET revoked_at = $2 WHERE id = ANY ($1::text[]) AND revoked_at IS NULL',
            [listText(revoked), stamp.at],
          )
        }
        checkWritten(changed, await readFacts(query, [...partners.keys()], [...keys.keys()], []), sha256)
        return { result: true, auditRecords, events: () => changeEvents(changed, stamp) }
      })
    },
  } satisfies Administration
}

/** Loads everything that the changes refer to. */
function loadFacts(query: Query, changes: readonly Change[]): Promise<StoredFacts> {
  const slugs = new Set<string>()
  const ids = new Set<string>()
  const removed = new Set<string>()
  for (const change of changes) {
    if (change.type === 'partner.created') slugs.add(change.partner.slug)
    else if (change.type === 'key.issued') {
      slugs.add(change.key.partner)
      ids.add(change.key.id)
    } else if ('slug' in change) slugs.add(change.slug)
    else ids.add(change.id)
    if (change.type === 'partner.removed') removed.add(change.slug)
    if (change.type === 'key.rotated') ids.add(change.successorId)
  }
  return readFacts(query, [...slugs], [...ids], [...removed])
}

/** Reads partners and keys. @param removed Partners whose unrevoked keys are read, too. */
async function readFacts(
  query: Query,
  slugs: readonly string[],
  ids: readonly string[],
  removed: readonly string[],
): Promise<StoredFacts> {
  const [partners, keys] = await Promise.all([
    slugs.length === 0
      ? []
      : query<StoredRow>(`${selectPartners} WHERE slug = ANY ($1::text[])`, [listText(slugs)]),
    ids.length + removed.length === 0 ? [] : query<StoredRow>(
      `${selectKeys} WHERE id = ANY ($1::text[]) OR (partner = ANY ($2::text[]) AND state <> 'revoked')`,
      [listText(ids), listText(removed)],
    ),
  ])
  return factsOf(
    new Map(partners.map(PARTNERS.read).map((partner) => [partner.slug, partner])),
    new Map(keys.map(KEYS.read).map((key) => [key.id, key])),
  )
}

async function writeRows(query: Query, sql: string, rows: readonly StoredRow[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    await query(sql, columnParameters(rows.slice(start, start + rowsPerStatement)))
  }
}

interface PendingLookup {
  readonly id: string
  readonly resolve: (facts: KeyFacts | undefined) => void
  readonly reject: (error: unknown) => void
}

/** In a larger batch, the first id would wait for the last. */
const maxBatch = 500

/** The server answers one query while this process reads another. More of them would mean smaller batches. */
const maxInFlight = 2

const selectFacts = `SELECT ${KEY_FACTS_COLUMNS}
  FROM partner_api.partner_key k JOIN partner_api.partner p ON p.slug = k.partner WHERE`
const selectOneFacts = `${selectFacts} k.id = $1`
const selectManyFacts = `${selectFacts} k.id = ANY ($1::text[])`
// With the condition of the index.
const selectImportedFacts = `${selectFacts} k.digest = ANY ($1::text[]) AND length(k.digest) > 64`

/**
 * Sends a first look-up at once, and batches those that arrive while queries are in flight. For a single id, the server
 * needs a quarter of the time that it takes for a list of one.
 */
export function createKeyFacts(database: Database) {
  let queue: PendingLookup[] = []
  let inFlight = 0

  async function fetchOne(id: string): Promise<KeyFacts | undefined> {
    inFlight++
    try {
      const [row] = await database.lookUp<StoredRow>(selectOneFacts, [id])
      return row && readKeyFacts(row)
    } finally {
      inFlight--
      fetchQueued()
    }
  }

  async function fetchMany(batch: readonly PendingLookup[]): Promise<void> {
    inFlight++
    try {
      // Under two revisions, one id is asked for twice.
      const ids = new Set(batch.map(({ id }) => id))
      const rows = await database.lookUp<StoredRow>(selectManyFacts, [listText([...ids])])
      const facts = new Map(rows.map(readKeyFacts).map((found) => [found.key.id, found]))
      for (const { id, resolve } of batch) resolve(facts.get(id))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    inFlight--
    fetchQueued()
  }

  function fetchQueued(): void {
    if (queue.length === 0 || inFlight >= maxInFlight) return
    const batch = queue.slice(0, maxBatch)
    queue = queue.slice(maxBatch)
    void fetchMany(batch)
  }

  return {
    async findImportedKey(text) {
      const schemes = await database.lookUp<StoredRow>(selectSchemes)
      if (schemes.length === 0) return false
      const digests = digestsOf(text, schemes.map(DIGEST_SCHEMES.read))
      const rows = await database.lookUp<StoredRow>(selectImportedFacts, [listText(digests)])
      const found = rows.map(readKeyFacts)
      return digests.map((digest) => found.find(({ key }) => key.digest === digest)).find((facts) =>
        facts !== undefined
      )
    },

    findKey(id) {
      // Postgres rejects the NUL, and with it the whole batch.
      if (id.includes('\0')) return Promise.resolve(undefined)
      if (inFlight < maxInFlight) return fetchOne(id)
      return new Promise((resolve, reject) => queue.push({ id, resolve, reject }))
    },

    async recordKeyUses(uses) {
      if (uses.size === 0) return
      const ids = [...uses.keys()].sort()
      // All replicas lock in the same order, which prevents deadlocks.
      await database.write(
        `UPDATE partner_api.partner_key k SET last_used_at = used.at FROM (
          SELECT k.id, u.at FROM partner_api.partner_key k
          JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON u.id = k.id
          WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
        ) used WHERE k.id = used.id`,
        [listText(ids), listText(ids.map((id) => uses.get(id)!))],
      )
    },
  } satisfies Pick<FactSource, 'findKey' | 'findImportedKey' | 'recordKeyUses'>
}
