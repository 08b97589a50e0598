import type { ContentKind } from '../../../../core/content/records.ts'
import type { Database } from '../connection/database.ts'

/** Records whose import changes how the server had better look for them. */
const many = 1000

/**
 * Has the server look at what an import wrote, before it does so by itself after a minute: until then it takes tables
 * for what they were when it last made its plans, and a page of a million profiles for a matter of sorting them. The
 * vacuum lets it read pages off the indexes alone, and sorts the words in. Where none of this may be asked for, or is
 * unknown, the import was one all the same.
 */
export async function refreshStatistics(
  database: Database,
  kind: ContentKind,
  changed: number,
): Promise<void> {
  if (kind !== 'profiles' || changed < many) return
  for (
    const command of [
      'ANALYZE partner_api.listing',
      'VACUUM partner_api.listing',
      'ANALYZE partner_api.profile',
    ]
  ) {
    await database.write(command).catch(() => undefined)
  }
}
