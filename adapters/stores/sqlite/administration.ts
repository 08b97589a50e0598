import type { Change } from '../../../core/admin/changes.ts'
import type { Key, Partner } from '../../../core/model.ts'
import { absent, changedKey, changedPartner, newKey, newPartner, required } from '../changes.ts'
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
} from './rows.ts'

/** `Administration` of the ports, synchronous. */
export interface Administration {
  listPartners(): readonly Partner[]
  findPartner(slug: string): Partner | undefined
  listKeys(partner?: string): readonly Key[]
  apply(changes: readonly Change[], ifFacts: string): boolean
}

export function createAdministration(database: Database, revisions: Revisions): Administration {
  const partners = database.statement<PartnerRow>(`SELECT ${PARTNER_COLUMNS} FROM partner ORDER BY slug`)
  const partner = database.statement<PartnerRow>(`SELECT ${PARTNER_COLUMNS} FROM partner WHERE slug = ?1`)
  const keys = database.statement<KeyRow>(`SELECT ${KEY_COLUMNS} FROM partner_key ORDER BY created_at, id`)
  const keysOfPartner = database.statement<KeyRow>(
    `SELECT ${KEY_COLUMNS} FROM partner_key WHERE partner = ?1 ORDER BY created_at, id`,
  )
  const key = database.statement<KeyRow>(`SELECT ${KEY_COLUMNS} FROM partner_key WHERE id = ?1`)
  const putPartner = database.statement(put('partner', PARTNER_COLUMNS))
  const putKey = database.statement(put('partner_key', KEY_COLUMNS))
  const revokeKeys = database.statement(`UPDATE partner_key SET state = 'revoked' WHERE partner = ?1`)

  function findPartner(slug: string): Partner | undefined {
    const row = partner.get(slug)
    return row && readPartner(row)
  }

  function findKey(id: string): Key | undefined {
    const row = key.get(id)
    return row && readKey(row)
  }

  function applyChange(change: Change): void {
    if (change.type === 'partner.created') {
      absent(findPartner(change.partner.slug), change, 'partner', change.partner.slug)
      putPartner.run(...partnerRow(newPartner(change.partner)))
    } else if (change.type === 'key.issued') {
      required(findPartner(change.key.partner), change, 'partner', change.key.partner)
      absent(findKey(change.key.id), change, 'key', change.key.id)
      putKey.run(...keyRow(newKey(change.key)))
    } else if ('slug' in change) {
      const before = required(findPartner(change.slug), change, 'partner', change.slug)
      putPartner.run(...partnerRow(changedPartner(before, change)))
      if (change.type === 'partner.removed') revokeKeys.run(change.slug)
    } else {
      const before = required(findKey(change.id), change, 'key', change.id)
      putKey.run(...keyRow(changedKey(before, change)))
    }
  }

  return {
    listPartners: () => partners.all().map(readPartner),
    findPartner,
    listKeys: (of) => (of === undefined ? keys.all() : keysOfPartner.all(of)).map(readKey),

    apply(changes, ifFacts) {
      return database.transaction(() => {
        if (revisions.current().facts !== ifFacts) return false
        changes.forEach(applyChange)
        // Last, because the successor may be issued after the rotation that names it.
        for (const change of changes) {
          if (change.type !== 'key.rotated') continue
          required(findKey(change.successorId), change, 'key', change.successorId)
        }
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
