/** A SQLite store with a partner, its administration, and the program on it. */
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createKeyAdministration, type IssuedKey, type NewKey } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import { newFile, programOn } from './cli-program.ts'

/** Creates a store with the partner `acme`. */
export async function createStore(
  { modules = MODULE_NAMES, keyPrefix }: {
    readonly modules?: readonly string[]
    readonly keyPrefix?: string
  } = {},
) {
  const file = newFile()
  const url = `sqlite:${file}`
  const store = await openSqliteStore(file, keyPrefix === undefined ? {} : { keyPrefix })
  const operator = { actor: 'test' }
  const partners = createPartnerAdministration(store, operator)
  const keys = createKeyAdministration(store, operator)
  await partners.create({ slug: 'acme', name: 'Acme', modules })
  /** Issues a key; live and of `acme` by default. */
  const issue = (more: Partial<NewKey> = {}): Promise<IssuedKey> =>
    keys.issue({ partner: 'acme', name: 'Plugin', environment: 'live', ...more })
  return { file, url, store, partners, keys, issue, ...programOn(url) }
}
