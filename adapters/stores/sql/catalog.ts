import { andThen } from '../../../core/lib/promise.ts'
import type { Catalog, Directory } from '../../../core/ports/directory.ts'
import type { RowFormat } from '../row-format.ts'
import { BANNERS, INDUSTRIES, PLANS } from '../tables.ts'
import type { SqlDatabase } from './database.ts'

/** What is small enough to be read whole. Profiles, which are not, are each database's own. */
export function createCatalog({ lookUp, read }: Pick<SqlDatabase, 'lookUp' | 'read'>) {
  const readAll = <R>({ name, columns, read: readRow }: RowFormat<R> & { readonly name: string }) => () =>
    andThen(read(`SELECT ${columns} FROM partner_api.${name}`), (rows) => rows.map(readRow))

  return {
    listIndustries: readAll(INDUSTRIES),
    listPlans: readAll(PLANS),
    findBanner: (partner) =>
      andThen(
        lookUp(`SELECT ${BANNERS.columns}, updated_at FROM partner_api.banner WHERE partner = $1`, [partner]),
        ([row]) => row && { ...BANNERS.read(row), updatedAt: Number(row.at(-1)) },
      ),
  } satisfies Catalog & Pick<Directory, 'listIndustries'>
}
