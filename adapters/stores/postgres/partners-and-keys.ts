import { keySnapshot, partnerSnapshot } from '../../../core/audit/chain.ts'
import type { Asynchronous } from '../../../core/lib/promise.ts'
import type { KeyFacts } from '../../../core/model.ts'
import type { Administration, Change } from '../../../core/ports/changes.ts'
import type { FactSource } from '../../../core/ports/facts.ts'
import { sha256 } from '../../digest.ts'
import { checkWritten } from '../audit-log.ts'
import { applyChanges, type BufferedChangeSet, createBufferedChangeSet } from '../change-set.ts'
import type { StoredRow } from '../row-format.ts'
import { FIRST_KEY_POSITION, KEY_FACTS_COLUMNS, KEYS, PARTNERS, readKeyFacts } from '../tables.ts'
import type { PostgresAuditLog } from './audit.ts'
import { runAudited } from './audited-change.ts'
import type { Database, Query } from './database.ts'
import { listText } from './sql.ts'
import type { Revisions } from './revisions.ts'
import { columnParameters, upsertSql } from './sql.ts'

const selectPartners = `SELECT ${PARTNERS.columns} FROM partner_api.partner`
const selectKeys = `SELECT ${KEYS.columns} FROM partner_api.partner_key`

// The expression is that of the index of all keys, which the planner must not scan for the keys of one partner.
const selectAllKeys = `${selectKeys}
  WHERE (created_at + 0, id) > ($1::bigint, $2::text) ORDER BY created_at + 0, id LIMIT $3`
const selectPartnerKeys = `${selectKeys}
  WHERE partner = $4 AND (created_at, id) > ($1::bigint, $2::text) ORDER BY created_at, id LIMIT $3`

/** Rows that go to the server in one statement: the removal of a partner changes all of its keys. */
const rowsPerStatement = 1000

const upsertPartners = upsertSql('partner', PARTNERS.columns)
// No change is about when a key was used, and what other processes have noted of that since the row was read stays.
const upsertKeys = upsertSql('partner_key', KEYS.columns, 'last_used_at')

export function createAdministration(
  database: Database,
  revisions: Revisions,
  auditLog: PostgresAuditLog,
): Asynchronous<Administration> {
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

    async listKeys(partner, { createdAt, id } = FIRST_KEY_POSITION, limit) {
      const rows = partner === undefined
        ? await database.read<StoredRow>(selectAllKeys, [createdAt, id, limit])
        : await database.read<StoredRow>(selectPartnerKeys, [createdAt, id, limit, partner])
      return rows.map(KEYS.read)
    },

    apply(changes, ifFacts, stamp) {
      return runAudited({ database, revisions, trail: auditLog }, 'facts', stamp, async (query, facts) => {
        if (facts !== ifFacts) return { result: false, auditRecords: [] }
        const changeSet = await loadChangeSet(query, changes)
        const auditRecords = applyChanges(changeSet, changes)
        await writeRows(query, upsertPartners, Array.from(changeSet.changedPartners(), PARTNERS.values))
        await writeRows(query, upsertKeys, Array.from(changeSet.changedKeys(), KEYS.values))
        const revoked = auditRecords.filter(({ type }) => type === 'key.revoked').map(({ keyId }) => keyId!)
        if (revoked.length > 0) {
          await query(
            'UPDATE partner_api.partner_key SET revoked_at = $2 WHERE id = ANY ($1::text[]) AND revoked_at IS NULL',
            [listText(revoked), stamp.at],
          )
        }
        const snapshots = await readSnapshots(query, changeSet)
        checkWritten(auditRecords, ({ keyId, partner }) => snapshots.get(keyId ?? ` ${partner}`))
        return { result: true, auditRecords }
      })
    },
  }
}

/** A draft over all that the changes refer to. */
async function loadChangeSet(query: Query, changes: readonly Change[]): Promise<BufferedChangeSet> {
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
  const partners = slugs.size === 0
    ? []
    : await query<StoredRow>(`${selectPartners} WHERE slug = ANY ($1::text[])`, [listText([...slugs])])
  const keys = await query<StoredRow>(
    `${selectKeys} WHERE id = ANY ($1::text[]) OR (partner = ANY ($2::text[]) AND state <> 'revoked')`,
    [listText([...ids]), listText([...removed])],
  )
  return createBufferedChangeSet(
    new Map(partners.map(PARTNERS.read).map((partner) => [partner.slug, partner])),
    new Map(keys.map(KEYS.read).map((key) => [key.id, key])),
  )
}

/** Snapshots of what was written, keys by id and partners by a space and their slug. */
async function readSnapshots(query: Query, changeSet: BufferedChangeSet): Promise<Map<string, string>> {
  const slugs = Array.from(changeSet.changedPartners(), ({ slug }) => slug)
  const ids = Array.from(changeSet.changedKeys(), ({ id }) => id)
  const [partners, keys] = await Promise.all([
    slugs.length === 0
      ? []
      : query<StoredRow>(`${selectPartners} WHERE slug = ANY ($1::text[])`, [listText(slugs)]),
    ids.length === 0 ? [] : query<StoredRow>(`${selectKeys} WHERE id = ANY ($1::text[])`, [listText(ids)]),
  ])
  return new Map([
    ...partners.map(PARTNERS.read).map((partner) => [` ${partner.slug}`, partnerSnapshot(partner)] as const),
    ...keys.map(KEYS.read).map((key) => [key.id, keySnapshot(key, sha256)] as const),
  ])
}

async function writeRows(query: Query, sql: string, rows: readonly StoredRow[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    await query(sql, columnParameters(rows.slice(start, start + rowsPerStatement)))
  }
}

/** A look-up that has not been sent yet. */
interface PendingLookup {
  readonly id: string
  readonly resolve: (facts: KeyFacts | undefined) => void
  readonly reject: (error: unknown) => void
}

/** Ids in one query: more would have the first of them wait for the last. */
const maxBatch = 500

/**
 * Queries under way at once: the server has one while we read the answer of another. With more of them fewer ids come
 * together, and each costs less by far in company.
 */
const maxInFlight = 2

const selectFacts = `SELECT ${KEY_FACTS_COLUMNS}
  FROM partner_api.partner_key k JOIN partner_api.partner p ON p.slug = k.partner WHERE k.id`
const selectOneFacts = `${selectFacts} = $1`
const selectManyFacts = `${selectFacts} = ANY ($1::text[])`

/**
 * Gathers the ids that are asked for while queries are under way, and asks for them with the next. Who is alone does
 * not wait for company: the first is sent at once.
 */
export function createKeyLookup(database: Database): Asynchronous<Pick<FactSource, 'findKey'>> {
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
      // Who asks under two revisions asks twice.
      const ids = new Set(batch.map(({ id }) => id))
      const rows = await database.lookUp<StoredRow>(selectManyFacts, [listText([...ids])])
      const facts = new Map(rows.map(readKeyFacts).map((found) => [found.key.id, found]))
      for (const { id, resolve: found } of batch) found(facts.get(id))
    } catch (error) {
      for (const { reject: failed } of batch) failed(error)
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
    findKey(id) {
      // No text of Postgres's holds it, and the query would fail for all that are in it.
      if (id.includes('\0')) return Promise.resolve(undefined)
      if (inFlight < maxInFlight) return fetchOne(id)
      return new Promise((found, failed) => queue.push({ id, resolve: found, reject: failed }))
    },
  }
}

export function createKeyUseRecorder(database: Database): Pick<FactSource, 'recordKeyUses'> {
  return {
    async recordKeyUses(uses) {
      if (uses.size === 0) return
      const ids = [...uses.keys()].sort()
      // Locked in one order by all replicas: those who note the same keys at once wait for each other, and never in a
      // circle.
      await database.write(
        `UPDATE partner_api.partner_key k SET last_used_at = used.at FROM (
          SELECT k.id, u.at FROM partner_api.partner_key k
          JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON u.id = k.id
          WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
        ) used WHERE k.id = used.id`,
        [listText(ids), listText(ids.map((id) => uses.get(id)!))],
      )
    },
  }
}
