import type { Change } from '../../../core/admin/changes.ts'
import type { Stamp } from '../../../core/audit/entry.ts'
import type { Key, Partner } from '../../../core/model.ts'
import { absent, changedKey, changedPartner, newKey, newPartner, required } from '../changes.ts'
import { keyNote, type Note, partnerNote, revocationNote } from '../trail.ts'
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

  function applyChange(change: Change): Note[] {
    if (change.type === 'partner.created') {
      absent(findPartner(change.partner.slug), change, 'partner', change.partner.slug)
      const after = newPartner(change.partner)
      putPartner.run(...partnerRow(after))
      return [partnerNote(change, undefined, after)]
    }
    if (change.type === 'key.issued') {
      required(findPartner(change.key.partner), change, 'partner', change.key.partner)
      absent(findKey(change.key.id), change, 'key', change.key.id)
      const after = newKey(change.key)
      putKey.run(...keyRow(after))
      return [keyNote(change, undefined, after)]
    }
    if ('slug' in change) {
      const before = required(findPartner(change.slug), change, 'partner', change.slug)
      const after = changedPartner(before, change)
      putPartner.run(...partnerRow(after))
      const revoked = change.type === 'partner.removed' ? revokeKeys(change.slug) : []
      return [partnerNote(change, before, after), ...revoked]
    }
    const before = required(findKey(change.id), change, 'key', change.id)
    const after = changedKey(before, change)
    putKey.run(...keyRow(after))
    return [keyNote(change, before, after)]
  }

  function revokeKeys(of: string): Note[] {
    return listKeys(of).filter(({ state }) => state !== 'revoked').map((before) => {
      const after: Key = { ...before, state: 'revoked' }
      putKey.run(...keyRow(after))
      return revocationNote(before, after)
    })
  }

  return {
    listPartners: () => partners.all().map(readPartner),
    findPartner,
    listKeys,

    apply(changes, ifFacts, stamp) {
      return database.transaction(() => {
        if (revisions.current().facts !== ifFacts) return false
        const notes = changes.flatMap(applyChange)
        // Last, because the successor may be issued after the rotation that names it.
        for (const change of changes) {
          if (change.type !== 'key.rotated') continue
          required(findKey(change.successorId), change, 'key', change.successorId)
        }
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
