import type { FactSource } from '../../../core/ports.ts'
import type { Database } from './database.ts'
import type { StoredRow } from '../row-format.ts'
import { KEY_FACTS_COLUMNS, readKeyFacts } from '../rows.ts'

export function createFacts(database: Database): Pick<FactSource, 'findKey' | 'recordKeyUses'> {
  const find = database.statement<StoredRow>(`
    SELECT ${KEY_FACTS_COLUMNS} FROM partner_key k JOIN partner p ON p.slug = k.partner WHERE k.id = ?1`)
  const recordUse = database.statement(`
    UPDATE partner_key SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`)

  return {
    findKey(id) {
      const row = find.get(id)
      return row && readKeyFacts(row)
    },

    recordKeyUses(uses) {
      if (uses.size === 0) return
      // A service does not stand still for this while an import goes on elsewhere: the next use is noted again.
      database.transaction(() => {
        for (const [id, at] of uses) recordUse.run(id, at)
      }, { wait: false })
    },
  }
}
