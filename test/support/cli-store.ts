/** A SQLite store with a partner, its administration, and the program on it. */
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { newFile, programOn } from './cli-program.ts'
import { createPartner } from './partner.ts'

/** Creates a store with the partner `acme`. */
export async function createStore(
  { modules, keyPrefix }: { readonly modules?: readonly string[]; readonly keyPrefix?: string } = {},
) {
  const file = newFile()
  const url = `sqlite:${file}`
  const store = await openSqliteStore(file, keyPrefix === undefined ? {} : { keyPrefix })
  return { file, url, store, ...await createPartner(store, modules), ...programOn(url) }
}
