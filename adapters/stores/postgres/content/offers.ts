import type { Offers } from '../../../../core/ports.ts'
import { RECORD_FORMATS } from '../../record-text.ts'
import type { Database } from '../connection/database.ts'

export function createOffers(database: Database): Offers {
  return {
    async findBanner(partner) {
      const [row] = await database.lookUp<[record: string, updatedAt: number]>(
        'SELECT record, updated_at FROM partner_api.banner WHERE partner = $1',
        [partner],
      )
      return row && { ...RECORD_FORMATS.banners.read(row[0]), updatedAt: row[1] }
    },
    async listPlans() {
      const rows = await database.read<[record: string]>('SELECT record FROM partner_api.plan')
      return rows.map(([record]) => RECORD_FORMATS.plans.read(record))
    },
  }
}
