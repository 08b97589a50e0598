/** A store in a Postgres database, which any number of processes on any number of machines may have open. */
import type { Store, StoreSettings } from '../../../core/ports/store.ts'
import { sha256 } from '../../digest.ts'
import { checkKeyPrefix, keyPrefixInUseError } from '../settings.ts'
import { StoreError } from '../store-error.ts'
import { createAuditLog } from './audit.ts'
import { connect } from './database.ts'
import type { Database } from './database.ts'
import { SqlError } from './errors.ts'
import { createContentAdministration } from './content.ts'
import { createDirectory, createOffers } from './directory.ts'
import { checkMigrated, migrate } from './migrate.ts'
import { createAdministration, createKeyLookup, createKeyUseRecorder } from './partners-and-keys.ts'
import { createQuotaStore } from './quotas.ts'
import { createReplicaRegistry } from './replicas.ts'
import { createActivityList, createUsageCounts } from './reports.ts'
import { createRevisions, type Revisions } from './revisions.ts'
import { createSignups } from './signups.ts'

/** How a database is opened. */
export interface PostgresStoreOptions {
  /** Make the store when there is none, and bring its schema up to date. Default true; otherwise either is an error. */
  readonly migrate?: boolean
  /**
   * First part of every key: 2–10 lower-case letters or digits, a letter first; `spk` unless settled. Can be
   * changed until the store holds a key.
   */
  readonly keyPrefix?: string
  /**
   * Milliseconds, 20 or more, default 1,000: within these a look-up is answered or given up. With half of them, a
   * server that says nothing is asked once more on another connection. A statement of a search has a quarter of them.
   */
  readonly lookUpTimeoutMs?: number
}

/**
 * Opens a store. All that it has is in the schema `partner_api` of the database, which it makes.
 *
 * @param url `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`, in the words of libpq. To these comes
 * `pooler=transaction` where a pooler may give each transaction to another connection of the server's.
 * @throws {StoreError} `unreachable` when the database does not answer, `missing` when there is no store and none may be
 * made, `newer_schema` when a newer program has migrated it to a schema that this one may not go on with, `refused` when
 * the address cannot be used, the schema belongs to another program, it is to be migrated and may not be, a copy into it
 * has not been finished, or the key prefix cannot be what is asked for.
 */
export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  const { migrate: mayMigrate = true, keyPrefix, lookUpTimeoutMs } = options
  if (keyPrefix !== undefined) checkKeyPrefix(keyPrefix)
  const database = connect(url, lookUpTimeoutMs === undefined ? {} : { lookUpTimeoutMs })
  try {
    if (mayMigrate) await migrate(database, keyPrefix)
    else await checkMigrated(database)
    const revisions = createRevisions(database)
    // Before the settings, which are not those of the finished store yet while it is copied into.
    await revisions.current(database.read)
    return assemble(database, revisions, await readSettings(database, revisions, keyPrefix))
  } catch (error) {
    await database.close()
    if (!(error instanceof SqlError)) throw error
    throw new StoreError('unreachable', `The store ${database.place} cannot be opened: ${error.message}.`, {
      cause: error,
    })
  }
}

function assemble(database: Database, revisions: Revisions, settings: StoreSettings): Store {
  const auditLog = createAuditLog(database)
  return {
    settings,
    sha256,
    close: database.close,
    async check() {
      await revisions.current()
    },
    revision: () => revisions.current(),
    clock: revisions.clock,
    directoryRevision: async () => (await revisions.current()).content,
    ...createKeyLookup(database),
    ...createKeyUseRecorder(database),
    ...createDirectory(database),
    ...createOffers(database),
    ...createAdministration(database, revisions, auditLog),
    ...createContentAdministration(database, revisions, auditLog),
    ...createSignups(database),
    ...createUsageCounts(database),
    ...createActivityList(database),
    listAudit: auditLog.listAudit,
    auditTail: auditLog.auditTail,
    auditHead: auditLog.auditHead,
    auditIntruders: auditLog.auditIntruders,
    replicas: createReplicaRegistry(database, revisions),
    quotas: createQuotaStore(database),
  }
}

/**
 * What was settled when the store was made, once `keyPrefix`, if any, has been settled anew.
 *
 * @throws {StoreError} `refused` when `keyPrefix` differs and there are keys that begin with the one before.
 */
async function readSettings(
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
  throw keyPrefixInUseError(database.place, before, keyPrefix)
}
