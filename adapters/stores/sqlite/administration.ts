import { keySnapshot, partnerSnapshot } from '../../../core/audit/snapshot.ts'
import type { Key, Partner } from '../../../core/model.ts'
import type { Administration } from '../../../core/ports.ts'
import { sha256 } from '../../digest.ts'
import { applyChanges, type FactsDraft } from '../apply.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import type { StoredRow } from '../row-format.ts'
import { BEFORE_ALL_KEYS, KEYS, PARTNERS } from '../rows.ts'
import { checkWritten, type Note } from '../trail.ts'
import type { Trail } from './trail.ts'

export function createAdministration(database: Database, revisions: Revisions, trail: Trail): Administration {
  const partners = database.statement<StoredRow>(
    `SELECT ${PARTNERS.columns} FROM partner WHERE slug > ?1 ORDER BY slug LIMIT ?2 + 0`,
  )
  const partner = database.statement<StoredRow>(`SELECT ${PARTNERS.columns} FROM partner WHERE slug = ?1`)
  const keys = database.statement<StoredRow>(`
    SELECT ${KEYS.columns} FROM partner_key WHERE (created_at, id) > (?1, ?2)
    ORDER BY created_at, id LIMIT ?3 + 0`)
  const keysOfPartner = database.statement<StoredRow>(`
    SELECT ${KEYS.columns} FROM partner_key WHERE partner = ?4 AND (created_at, id) > (?1, ?2)
    ORDER BY created_at, id LIMIT ?3 + 0`)
  const unrevokedKeys = database.statement<StoredRow>(
    `SELECT ${KEYS.columns} FROM partner_key WHERE partner = ?1 AND state <> 'revoked' ORDER BY created_at, id`,
  )
  const key = database.statement<StoredRow>(`SELECT ${KEYS.columns} FROM partner_key WHERE id = ?1`)
  const putPartner = database.statement(put('partner', PARTNERS.columns))
  const putKey = database.statement(put('partner_key', KEYS.columns))
  const noteRevocation = database.statement(
    'UPDATE partner_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL',
  )

  function findPartner(slug: string): Partner | undefined {
    const row = partner.get(slug)
    return row && PARTNERS.read(row)
  }

  function findKey(id: string): Key | undefined {
    const row = key.get(id)
    return row && KEYS.read(row)
  }

  function readSnapshot({ keyId, partner }: Note): string | undefined {
    const found = keyId === undefined ? findPartner(partner!) : findKey(keyId)
    return found && ('slug' in found ? partnerSnapshot(found) : keySnapshot(found, sha256))
  }

  const draft: FactsDraft = {
    findPartner,
    findKey,
    listUnrevokedKeys: (slug) => unrevokedKeys.all(slug).map(KEYS.read),
    putPartner: (changed) => void putPartner.run(...PARTNERS.values(changed)),
    putKey: (changed) => void putKey.run(...KEYS.values(changed)),
  }

  return {
    listPartners: (after = '', limit) => partners.all(after, limit).map(PARTNERS.read),
    findPartner,
    listKeys(slug, { createdAt, id } = BEFORE_ALL_KEYS, limit) {
      const rows = slug === undefined
        ? keys.all(createdAt, id, limit)
        : keysOfPartner.all(createdAt, id, limit, slug)
      return rows.map(KEYS.read)
    },

    apply(changes, ifFacts, stamp) {
      return database.transaction(() => {
        if (revisions.current().facts !== ifFacts) return false
        const notes = applyChanges(draft, changes)
        for (const { type, keyId } of notes) if (type === 'key.revoked') noteRevocation.run(keyId!, stamp.at)
        checkWritten(notes, readSnapshot)
        trail.append(notes, stamp)
        revisions.bump('facts')
        return true
      })
    },
  }
}

function put(table: string, [primary, ...others]: readonly string[]): string {
  return `INSERT INTO ${table} (${[primary, ...others]}) VALUES (${[primary, ...others].map(() => '?')})
    ON CONFLICT (${primary}) DO UPDATE SET ${others.map((column) => `${column} = excluded.${column}`)}`
}
