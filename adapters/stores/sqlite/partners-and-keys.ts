import { applyChanges, checkWritten, type StoredFacts } from '../../../core/admin/change-set.ts'
import type { Administration } from '../../../core/ports/changes.ts'
import type { FactSource } from '../../../core/ports/facts.ts'
import { changeEvents } from '../../../core/webhooks/events.ts'
import { digestsOf, sha256 } from '../../digest.ts'
import { keyConditions } from '../key-filter.ts'
import type { StoredRow, Value } from '../row-format.ts'
import { DIGEST_SCHEMES, KEY_FACTS_COLUMNS, KEYS, PARTNERS, readKeyFacts } from '../tables.ts'
import type { SqliteAuditLog } from './audit.ts'
import { type Database, placeholders, transactionWithRetry, upsertSql } from './database.ts'
import type { Revisions } from './revisions.ts'
import type { AddEvents } from './webhooks.ts'

const selectSchemesSql = `SELECT ${DIGEST_SCHEMES.columns} FROM digest_scheme`

/** Before every key, those included that another program has added. */
const firstKeyPosition = { createdAt: -Infinity, id: '' }

export function createAdministration(
  database: Database,
  revisions: Revisions,
  auditLog: SqliteAuditLog,
  addEvents: AddEvents,
) {
  const selectPartners = database.statement<StoredRow>(
    `SELECT ${PARTNERS.columns} FROM partner WHERE slug > ?1 ORDER BY slug LIMIT ?2 + 0`,
  )
  const selectPartner = database.statement<StoredRow>(
    `SELECT ${PARTNERS.columns} FROM partner WHERE slug = ?1`,
  )
  let lastSelection = { sql: '', statement: selectPartners }
  const selectUnrevokedKeys = database.statement<StoredRow>(
    `SELECT ${KEYS.columns} FROM partner_key WHERE partner = ?1 AND state <> 'revoked'`,
  )
  const selectKey = database.statement<StoredRow>(`SELECT ${KEYS.columns} FROM partner_key WHERE id = ?1`)
  const upsertPartner = database.statement(upsertSql('partner', PARTNERS.columns))
  const upsertKey = database.statement(upsertSql('partner_key', KEYS.columns))
  const insertScheme = database.statement(`
    INSERT INTO digest_scheme (${DIGEST_SCHEMES.columns}) VALUES (${placeholders(DIGEST_SCHEMES.columns)})
    ON CONFLICT DO NOTHING`)
  const selectSchemes = database.statement<StoredRow>(selectSchemesSql)
  const selectDigests = database.statement<StoredRow>(
    `SELECT ${KEYS.columns} FROM partner_key WHERE substr(digest, -64) IN (SELECT value FROM json_each(?1))`,
  )
  const setRevokedAt = database.statement(
    'UPDATE partner_key SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL',
  )

  const stored: StoredFacts = {
    findPartner(slug) {
      const row = selectPartner.get(slug)
      return row && PARTNERS.read(row)
    },
    findKey(id) {
      const row = selectKey.get(id)
      return row && KEYS.read(row)
    },
    listUnrevokedKeys: (slug) => selectUnrevokedKeys.all(slug).map(KEYS.read),
  }

  return {
    listPartners: (after = '', limit) => selectPartners.all(after, limit).map(PARTNERS.read),
    findPartner: stored.findPartner,
    listKeys(filter, { createdAt, id } = firstKeyPosition, limit) {
      const parameters: Value[] = [createdAt, id, limit]
      const conditions = keyConditions(filter, (value) => `?${parameters.push(value)}`)
      // The inner query reads an index only.
      const sql = `
        SELECT ${KEYS.columns} FROM (
          SELECT created_at AS page_at, id AS page_id FROM partner_key
          WHERE (created_at, id) > (?1, ?2)${conditions} ORDER BY created_at, id LIMIT ?3 + 0
        ) CROSS JOIN partner_key ON id = page_id ORDER BY page_at, page_id`
      // A statement for each page would fill the memory until it is collected.
      if (sql !== lastSelection.sql) lastSelection = { sql, statement: database.statement(sql) }
      return lastSelection.statement.all(...parameters).map(KEYS.read)
    },

    findDigests: (digests) => ({
      schemes: selectSchemes.all().map((row) => DIGEST_SCHEMES.read(row).id),
      keys: selectDigests.all(JSON.stringify(digests)).map(KEYS.read),
    }),

    apply(changes, ifFacts, context) {
      return database.transaction(() => {
        if (revisions.current().facts !== ifFacts) return false
        const changed = applyChanges(stored, changes, sha256)
        for (const partner of changed.partners.values()) upsertPartner.run(...PARTNERS.values(partner))
        for (const scheme of changed.schemes) insertScheme.run(...DIGEST_SCHEMES.values(scheme))
        for (const key of changed.keys.values()) upsertKey.run(...KEYS.values(key))
        for (const { type, keyId } of changed.auditRecords) {
          if (type === 'key.revoked') setRevokedAt.run(keyId!, context.at)
        }
        checkWritten(changed, stored, sha256)
        auditLog.append(changed.auditRecords, context)
        addEvents(() => changeEvents(changed, context))
        revisions.bump('facts')
        return true
      })
    },
  } satisfies Administration
}

export function createKeyLookup(database: Database) {
  const selectFacts = `SELECT ${KEY_FACTS_COLUMNS} FROM partner_key k JOIN partner p ON p.slug = k.partner`
  const selectKeyFacts = database.statement<StoredRow>(`${selectFacts} WHERE k.id = ?1`)
  const selectSchemes = database.statement<StoredRow>(selectSchemesSql)
  // The condition of the index.
  const selectImported = database.statement<StoredRow>(
    `${selectFacts} WHERE k.digest = ?1 AND length(k.digest) > 64`,
  )
  const updateLastUsed = database.statement(`
    UPDATE partner_key SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`)

  return {
    findKey(id) {
      const row = selectKeyFacts.get(id)
      return row && readKeyFacts(row)
    },

    findImportedKey(text) {
      const schemes = selectSchemes.all().map(DIGEST_SCHEMES.read)
      if (schemes.length === 0) return false
      for (const digest of digestsOf(text, schemes)) {
        const row = selectImported.get(digest)
        if (row !== undefined) return readKeyFacts(row)
      }
      return undefined
    },

    recordKeyUses(uses) {
      if (uses.size === 0) return
      return transactionWithRetry(database, () => {
        for (const [id, at] of uses) updateLastUsed.run(id, at)
      })
    },
  } satisfies Pick<FactSource, 'findKey' | 'findImportedKey' | 'recordKeyUses'>
}
