import type { Change } from '../../../core/admin/changes.ts'
import type { Stamp } from '../../../core/audit/entry.ts'
import type { Key, Partner } from '../../../core/model.ts'
import { applyChanges, type FactsDraft } from '../apply.ts'
import type { Database } from './database.ts'
import type { Revisions } from './revisions.ts'
import {
  KEY_COLUMNS,
  type KeyRow,
  keyRow,
  PARTNER_COLUMNS,
  type PartnerRow,
  partnerRow,
  readKey,
  readPartner,
} from '../rows.ts'
import type { Trail } from './trail.ts'

/** `Administration` of the ports, synchronous. */
export interface Administration {
  listPartners(): readonly Partner[]
  findPartner(slug: string): Partner | undefined
  listKeys(partner?: string): readonly Key[]
  apply(changes: readonly Change[], ifFacts: string, stamp: Stamp): boolean
}

export function createAdministration(database: Database, revisions: Revisions, trail: Trail): Administration {
  const partners = database.statement<PartnerRow>(`SELECT ${PARTNER_COLUMNS} FROM partner ORDER BY slug`)
  const partner = database.statement<PartnerRow>(`SELECT ${PARTNER_COLUMNS} FROM partner WHERE slug = ?1`)
  const keys = database.statement<KeyRow>(`SELECT ${KEY_COLUMNS} FROM partner_key ORDER BY created_at, id`)
  const keysOfPartner = database.statement<KeyRow>(
    `SELECT ${KEY_COLUMNS} FROM partner_key WHERE partner = ?1 ORDER BY created_at, id`,
  )
  const key = database.statement<KeyRow>(`SELECT ${KEY_COLUMNS} FROM partner_key WHERE id = ?1`)
  const putPartner = database.statement(put('partner', PARTNER_COLUMNS))
  const putKey = database.statement(put('partner_key', KEY_COLUMNS))
  const noteRevocation = database.statement(
    'UPDATE partner_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL',
  )

  function findPartner(slug: string): Partner | undefined {
    const row = partner.get(slug)
    return row && readPartner(row)
  }

  function findKey(id: string): Key | undefined {
    const row = key.get(id)
    return row && readKey(row)
  }

  function listKeys(of?: string): Key[] {
    return (of === undefined ? keys.all() : keysOfPartner.all(of)).map(readKey)
  }

  const draft: FactsDraft = {
    findPartner,
    findKey,
    listKeys,
    putPartner: (changed) => void putPartner.run(...partnerRow(changed)),
    putKey: (changed) => void putKey.run(...keyRow(changed)),
  }

  return {
    listPartners: () => partners.all().map(readPartner),
    findPartner,
    listKeys,

    apply(changes, ifFacts, stamp) {
      return database.transaction(() => {
        if (revisions.current().facts !== ifFacts) return false
        const notes = applyChanges(draft, changes)
        for (const { type, keyId } of notes) if (type === 'key.revoked') noteRevocation.run(keyId!, stamp.at)
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
