import { andThen } from '../../../core/lib/promise.ts'
import type { Catalog, Directory } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'
import { sha256 } from '../../digest.ts'
import { createAuditLog } from './audit.ts'
import { query, rowsSql, rowsText, type SqlDatabase, upsertRowsSql } from './database.ts'
import { createAdministration, createKeyLookup } from './partners-and-keys.ts'
import { createReports } from './reports.ts'
import type { RowFormat } from './row-format.ts'
import { CONTENT_TABLES, ENDPOINTS } from './tables.ts'
import { createWebhookStore } from './webhooks.ts'

/** The lists of a store whose statements each database has for itself. */
export interface StoreLists {
  readonly listKeys: Store['listKeys']
  readonly listActivity: Store['listActivity']
  readonly auditIntruders: Store['auditIntruders']
}

/** The members of a store whose statements are the same for both databases. */
export function createSharedMembers(sql: SqlDatabase) {
  return {
    sha256,
    ...createCatalog(sql),
    ...createKeyLookup(sql),
    ...createAdministration(sql),
    ...createAuditLog(sql),
    ...createReports(sql),
    ...createEndpointRecords(sql),
    webhooks: createWebhookStore(sql),
  }
}

/** The lists that are small enough to be read whole. Profiles, which are not, are each database's own. */
function createCatalog({ lookUp, read }: SqlDatabase) {
  const { banners, industries, plans } = CONTENT_TABLES
  const readAll = <R>({ name, columns, read: readRow }: RowFormat<R> & { readonly name: string }) => () =>
    andThen(read(`SELECT ${columns} FROM partner_api.${name}`), (rows) => rows.map(readRow))

  return {
    listIndustries: readAll(industries),
    listPlans: readAll(plans),
    findBanner: (partner) =>
      andThen(
        lookUp(`SELECT ${banners.columns}, updated_at FROM partner_api.banner WHERE partner = $1`, [partner]),
        ([row]) => row && { ...banners.read(row), updatedAt: Number(row.at(-1)) },
      ),
  } satisfies Catalog & Pick<Directory, 'listIndustries'>
}

function createEndpointRecords({ dialect, read, transactionUnsynced }: SqlDatabase) {
  const upsert = upsertRowsSql(dialect, 'endpoint', ENDPOINTS.columns, { keys: ['service', 'name'] })
  // An endpoint of another name was renamed.
  const deleteSamePath = `
    DELETE FROM partner_api.endpoint WHERE (service, method, path) IN
    (SELECT service, method, path FROM ${rowsSql(dialect, ENDPOINTS.columns)} AS given)`
  return {
    recordEndpoints: (endpoints) =>
      transactionUnsynced(function* () {
        const rows = [rowsText(ENDPOINTS, endpoints)]
        yield* query(deleteSamePath, rows)
        yield* query(upsert, rows)
      }),
    listEndpoints: () =>
      andThen(
        read(`SELECT ${ENDPOINTS.columns} FROM partner_api.endpoint ORDER BY name, service`),
        (rows) => rows.map(ENDPOINTS.read),
      ),
  } satisfies Pick<Store, 'recordEndpoints' | 'listEndpoints'>
}
