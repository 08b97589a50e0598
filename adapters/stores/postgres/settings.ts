import type { StoreSettings } from '../../../core/ports.ts'
import { StoreError } from '../store-error.ts'
import type { Database } from './connection/database.ts'
import type { Revisions } from './revisions.ts'

/**
 * What was settled when the store was made, once `keyPrefix`, if any, has been settled anew.
 *
 * @throws {StoreError} `refused` when `keyPrefix` differs and there are keys that begin with the one before.
 */
export async function readSettings(
  database: Database,
  revisions: Revisions,
  keyPrefix: string | undefined,
): Promise<StoreSettings> {
  const [row] = await database.read<[keyPrefix: string, cursorSecret: string]>(
    'SELECT key_prefix, cursor_secret FROM partner_api.store',
  )
  const [before, cursorSecret] = row!
  if (keyPrefix === undefined || keyPrefix === before) return { keyPrefix: before, cursorSecret }
  const changed = await database.transaction(async (query) => {
    // No key is issued meanwhile.
    await revisions.lock(query, 'facts')
    return await query(
      'UPDATE partner_api.store SET key_prefix = $1 WHERE NOT EXISTS (SELECT 1 FROM partner_api.partner_key) RETURNING id',
      [keyPrefix],
    )
  })
  if (changed.length > 0) return { keyPrefix, cursorSecret }
  throw new StoreError(
    'refused',
    `The key prefix of ${database.place} cannot become ${keyPrefix}: it holds keys that begin with ${before}.`,
  )
}
