import type { StoreSettings } from '../../../core/ports.ts'
import { StoreError } from '../store-error.ts'
import type { Database } from './database.ts'

/**
 * What was settled when the file was made, once `keyPrefix`, if any, has been settled anew.
 *
 * @throws {StoreError} `refused` when `keyPrefix` differs and there are keys that begin with the one before.
 */
export function readSettings(database: Database, file: string, keyPrefix: string | undefined): StoreSettings {
  const read = database.statement<[keyPrefix: string, cursorSecret: string]>(
    'SELECT key_prefix, cursor_secret FROM store',
  )
  const [before, cursorSecret] = read.get()!
  if (keyPrefix === undefined || keyPrefix === before) return { keyPrefix: before, cursorSecret }
  const changed = database.transaction(() =>
    database.statement('UPDATE store SET key_prefix = ?1 WHERE NOT EXISTS (SELECT 1 FROM partner_key)').run(
      keyPrefix,
    )
  )
  if (changed.changes > 0) return { keyPrefix, cursorSecret }
  throw new StoreError(
    'refused',
    `The key prefix of ${file} cannot become ${keyPrefix}: it holds keys that begin with ${before}.`,
  )
}
