import type { FactSource, Offers } from '../../../core/ports.ts'
import { RECORD_FORMATS } from '../record-text.ts'
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

export function createOffers(database: Database): Offers {
  const banner = database.statement<[record: string, updatedAt: number]>(
    'SELECT record, updated_at FROM banner WHERE partner = ?1',
  )
  const plans = database.statement<[record: string]>('SELECT record FROM plan')

  return {
    findBanner(partner) {
      const row = banner.get(partner)
      return row && { ...RECORD_FORMATS.banners.read(row[0]), updatedAt: row[1] }
    },
    listPlans: () => plans.all().map(([record]) => RECORD_FORMATS.plans.read(record)),
  }
}
