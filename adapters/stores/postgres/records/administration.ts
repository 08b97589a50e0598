import type { Change } from '../../../../core/admin/changes.ts'
import { keySnapshot, partnerSnapshot } from '../../../../core/audit/snapshot.ts'
import type { Administration } from '../../../../core/ports.ts'
import { sha256 } from '../../../digest.ts'
import type { Asynchronous } from '../../answers.ts'
import { applyChanges } from '../../apply.ts'
import { createDraft, type Draft } from '../../draft.ts'
import type { StoredRow } from '../../row-format.ts'
import { BEFORE_ALL_KEYS, KEYS, PARTNERS } from '../../rows.ts'
import { parametersOf, upsert } from '../column-lists.ts'
import { type Database, listText, type Query } from '../connection/database.ts'
import { decide } from './decide.ts'
import type { Revisions } from '../revisions.ts'
import { checkWritten } from '../../trail.ts'
import type { Trail } from './trail.ts'

const selectPartners = `SELECT ${PARTNERS.columns} FROM partner_api.partner`
const selectKeys = `SELECT ${KEYS.columns} FROM partner_api.partner_key`

// The expression is that of the index of all keys, which the planner must not scan for the keys of one partner.
const listAllKeys = `${selectKeys}
  WHERE (created_at + 0, id) > ($1::bigint, $2::text) ORDER BY created_at + 0, id LIMIT $3`
const listPartnerKeys = `${selectKeys}
  WHERE partner = $4 AND (created_at, id) > ($1::bigint, $2::text) ORDER BY created_at, id LIMIT $3`

/** Rows that go to the server in one statement: the removal of a partner changes all of its keys. */
const writtenAtOnce = 1000

const putPartners = upsert('partner', PARTNERS.columns)
// No change is about when a key was used, and what other processes have noted of that since the row was read stays.
const putKeys = upsert('partner_key', KEYS.columns, 'last_used_at')

export function createAdministration(
  database: Database,
  revisions: Revisions,
  trail: Trail,
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

    async listKeys(partner, { createdAt, id } = BEFORE_ALL_KEYS, limit) {
      const rows = partner === undefined
        ? await database.read<StoredRow>(listAllKeys, [createdAt, id, limit])
        : await database.read<StoredRow>(listPartnerKeys, [createdAt, id, limit, partner])
      return rows.map(KEYS.read)
    },

    apply(changes, ifFacts, stamp) {
      return decide({ database, revisions, trail }, 'facts', stamp, async (query, facts) => {
        if (facts !== ifFacts) return { result: false, notes: [] }
        const draft = await draftFor(query, changes)
        const notes = applyChanges(draft, changes)
        await write(query, putPartners, Array.from(draft.changedPartners(), PARTNERS.values))
        await write(query, putKeys, Array.from(draft.changedKeys(), KEYS.values))
        const revoked = notes.filter(({ type }) => type === 'key.revoked').map(({ keyId }) => keyId!)
        if (revoked.length > 0) {
          await query(
            'UPDATE partner_api.partner_key SET revoked_at = $2 WHERE id = ANY ($1::text[]) AND revoked_at IS NULL',
            [listText(revoked), stamp.at],
          )
        }
        const kept = await readBack(query, draft)
        checkWritten(notes, ({ keyId, partner }) => kept.get(keyId ?? ` ${partner}`))
        return { result: true, notes }
      })
    },
  }
}

/** A draft over all that the changes refer to. */
async function draftFor(query: Query, changes: readonly Change[]): Promise<Draft> {
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
  return createDraft(
    new Map(partners.map(PARTNERS.read).map((partner) => [partner.slug, partner])),
    new Map(keys.map(KEYS.read).map((key) => [key.id, key])),
  )
}

/** Snapshots of what was written, keys by id and partners by a space and their slug. */
async function readBack(query: Query, draft: Draft): Promise<Map<string, string>> {
  const slugs = Array.from(draft.changedPartners(), ({ slug }) => slug)
  const ids = Array.from(draft.changedKeys(), ({ id }) => id)
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

async function write(query: Query, sql: string, rows: readonly StoredRow[]): Promise<void> {
  for (let start = 0; start < rows.length; start += writtenAtOnce) {
    await query(sql, parametersOf(rows.slice(start, start + writtenAtOnce)))
  }
}
