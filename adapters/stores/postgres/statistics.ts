import type { ContentKind } from '../../../core/content/records.ts'
import type { Database } from './database.ts'

/** Records whose import changes what the server knows of its tables. */
const many = 1000

/**
 * Has the server look at what an import wrote, before it does so by itself after a minute: until then it takes tables
 * for as large as they were. Whoever may not ask for that imports all the same.
 */
export async function refreshStatistics(
  database: Database,
  kind: ContentKind,
  changed: number,
): Promise<void> {
  if (kind !== 'profiles' || changed < many) return
  for (const table of ['profile', 'listing', 'tally', 'industry']) {
    await database.read(`VACUUM (ANALYZE) partner_api.${table}`).catch(() => undefined)
  }
}
