import type { Offers } from '../../../core/ports.ts'
import { RECORD_FORMATS } from '../record-text.ts'
import type { Database } from './database.ts'

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
