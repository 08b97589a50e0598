import type { FactSource } from '../../../../core/ports.ts'
import { type Database, listText } from '../connection/database.ts'

export function createKeyUses(database: Database): Pick<FactSource, 'recordKeyUses'> {
  return {
    async recordKeyUses(uses) {
      if (uses.size === 0) return
      const ids = [...uses.keys()].sort()
      // Locked in one order by all replicas: those who note the same keys at once wait for each other, and never in a
      // circle.
      await database.write(
        `UPDATE partner_api.partner_key k SET last_used_at = used.at FROM (
          SELECT k.id, u.at FROM partner_api.partner_key k
          JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON u.id = k.id
          WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
        ) used WHERE k.id = used.id`,
        [listText(ids), listText(ids.map((id) => uses.get(id)!))],
      )
    },
  }
}
