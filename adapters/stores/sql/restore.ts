/** Makes a restored store safe to serve: it refuses what the replaced store refused, and calls no webhook. */
import { toDisabledWebhook } from '../../../core/admin/apply.ts'
import { narrowKey, narrowPartner } from '../../../core/admin/narrow.ts'
import { restoreAuditRecord, type RestoreMode } from '../../../core/audit/records.ts'
import type { MaybePromise } from '../../../core/lib/promise.ts'
import { modulesWith } from '../../../core/model.ts'
import type { AuditEntry, AuditHead } from '../../../core/ports/audit.ts'
import type { AuditContext, Change } from '../../../core/ports/changes.ts'
import { readRows } from '../../../core/ports/store.ts'
import { appendAuditRecords, createAuditLog } from './audit.ts'
import {
  type Dialect,
  idsSql,
  idsText,
  query,
  type SqlDatabase,
  type SqlQuery,
  type SqlReader,
  type Work,
  writeRows,
} from './database.ts'
import { applyFacts, SELECT_MODULES } from './partners-and-keys.ts'
import { INTEGER_COLUMNS, type RowFormat, safeColumns, type StoredRow } from './row-format.ts'
import { CLAIMS, KEYS, MODULES, PARTNERS, WEBHOOKS } from './tables.ts'
import { changeWebhook, SELECT_WEBHOOKS, upsertWebhooksSql } from './webhooks.ts'

/** The store that a restore replaces, which is only read. */
export type ReplacedStore = SqlReader

/** The changes that administrators made since the backup, as the log of the replaced store has them. */
export interface ChangesSince {
  /** The sequence of the last entry that the backup has, too. */
  readonly after: number
  /** How many entries follow it. */
  readonly entries: number
  /** How many of them issued keys. */
  readonly issuedKeys: number
  /** How many of them deleted signups. */
  readonly erasures: number
}

/** The changes that made a restored store safe to serve. */
export interface Restoration {
  readonly mode: RestoreMode
  /** `undefined` without a replaced store that can be read. */
  readonly since: ChangesSince | undefined
  /** How many partners and keys were narrowed to what the replaced store allows. */
  readonly narrowed: { readonly partners: number; readonly keys: number }
  /** Ids of the webhooks that were disabled. */
  readonly disabledWebhooks: readonly string[]
  /** How many open claims were revoked. */
  readonly revokedClaims: number
}

/**
 * What a replaced store refuses cannot be known: it cannot be read, it is another store than that of the backup, it
 * is older than the restored one, or it was changed during the restore.
 */
export class ReplacedStoreError extends Error {
  override readonly name = 'ReplacedStoreError'
  readonly code: 'replaced_unreadable' | 'replaced_unrelated' | 'replaced_older' | 'replaced_changed'

  constructor(code: ReplacedStoreError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Secures a restored store, in one transaction: disables its webhooks, revokes its open claims, and narrows each
 * partner and key that has not ended to what the replaced store allows. Adds an entry for each change, and one for
 * the restore. Memory does not grow with the stores.
 *
 * @param replaced `undefined` without one that can be read: then nothing is narrowed.
 * @param options.asBackedUp Whether what the replaced store refuses is to be accepted as it was in the backup.
 * @param options.mayBeSwapped Whether `restored` may be the replaced store by mistake: it is refused where all that the
 * other log has is in its own, too.
 * @throws {ReplacedStoreError} Then nothing is changed.
 */
export async function secureRestored(
  restored: SqlDatabase,
  replaced: ReplacedStore | undefined,
  { asBackedUp, mayBeSwapped }: { readonly asBackedUp: boolean; readonly mayBeSwapped: boolean },
  context: AuditContext,
): Promise<Restoration> {
  const backup = await createAuditLog(restored).auditHead()
  const other = replaced && { ...replaced, read: readingReplaced(replaced.read) }
  const head = other && await createAuditLog(other).auditHead()
  const since = other && head && await changesSince(restored, other, backup, head)
  if (mayBeSwapped && since?.entries === 0) await assertNotSwapped(restored, backup, since.after)
  const { dialect } = restored
  return await restored.change('facts', context, function* () {
    const disabledWebhooks = yield* disableWebhooks(dialect, context)
    const revokedClaims = yield* revokeClaims(dialect, context)
    const isNarrowed = other !== undefined && !asBackedUp
    const narrowed = isNarrowed ? yield* narrow(dialect, other, context) : { partners: 0, keys: 0 }
    if (other !== undefined) {
      const [row] = yield* query('SELECT audit_hash FROM partner_api.store', [], other.read)
      if (row?.[0] !== head?.hash) {
        throw new ReplacedStoreError('replaced_changed', 'it was changed meanwhile')
      }
    }
    const mode = modeOf(other, asBackedUp)
    const result: Restoration = { mode, since, narrowed, disabledWebhooks, revokedClaims }
    return { result, auditRecords: [restoreAuditRecord(head, backup, mode)] }
  })
}

/** @throws {ReplacedStoreError} where the restored store has entries after `last` and does not end with a restore. */
async function assertNotSwapped(restored: SqlDatabase, backup: AuditHead, last: number): Promise<void> {
  if (backup.sequence === last) return
  // A restore of a store that was not changed since can be repeated.
  const [end] = await createAuditLog(restored).listAudit(backup.sequence - 1, 1)
  if (end?.type === 'store.restored') return
  const reason =
    `its audit log ends at entry ${last}, and the restored store has the same log up to ${backup.sequence}`
  throw new ReplacedStoreError('replaced_older', reason)
}

function modeOf(replaced: ReplacedStore | undefined, asBackedUp: boolean): RestoreMode {
  if (asBackedUp) return 'as_backed_up'
  return replaced === undefined ? 'unknown' : 'narrowed'
}

/** The entries of the replaced store after the last one that the backup has, too. */
export function readEntriesAfter(after: number, replaced: ReplacedStore): AsyncGenerator<AuditEntry> {
  const log = createAuditLog(replaced)
  return readRows<AuditEntry>((last, limit) => log.listAudit(last?.sequence ?? after, limit))
}

/** Reads as `read` does, with each error as a `ReplacedStoreError`. */
function readingReplaced(read: SqlQuery): SqlQuery {
  return (sql, parameters) => {
    const rows: MaybePromise<never[]> = usingReplaced(() => read(sql, parameters))
    return rows instanceof Promise ? rows.catch((error) => failUnreadable(error)) : rows
  }
}

/**
 * Runs `work` on values of the replaced store, which may be damaged, with each error as a `ReplacedStoreError`.
 *
 * @param row The row of the values, for the message.
 */
function usingReplaced<T>(work: () => T, row?: string): T {
  try {
    return work()
  } catch (error) {
    return failUnreadable(error, row)
  }
}

function failUnreadable(cause: unknown, row?: string): never {
  const message = (cause as Error).message.replace(/\.$/, '')
  const detail = row === undefined ? message : `${row}: ${message}`
  throw new ReplacedStoreError('replaced_unreadable', detail, { cause })
}

async function changesSince(
  restored: SqlDatabase,
  replaced: ReplacedStore,
  backup: AuditHead,
  head: AuditHead,
): Promise<ChangesSince> {
  const log = createAuditLog(restored)
  const other = createAuditLog(replaced)
  // The last entry that both logs have: the hash of an entry covers all before it.
  let equal = 0
  let different = Math.min(backup.sequence, head.sequence) + 1
  while (different - equal > 1) {
    const middle = Math.floor((equal + different) / 2)
    const [entry] = await log.listAudit(middle - 1, 1)
    const [otherEntry] = await other.listAudit(middle - 1, 1)
    if (entry !== undefined && entry.hash === otherEntry?.hash) equal = middle
    else different = middle
  }
  if (equal === 0 && backup.sequence > 0) {
    const reason = 'its audit log has no entry in common with the backup'
    throw new ReplacedStoreError('replaced_unrelated', reason)
  }
  let issuedKeys = 0
  let erasures = 0
  for await (const { type } of readEntriesAfter(equal, replaced)) {
    if (type === 'key.issued') issuedKeys++
    if (type === 'signups.deleted') erasures++
  }
  return { after: equal, entries: head.sequence - equal, issuedKeys, erasures }
}

const pageRows = 500
const hasNotEnded = `state NOT IN ('removed', 'retired', 'revoked')`
/** The claims to revoke. The expired ones are among them: the clock of the machine may be ahead, and be set back. */
const isOpen = `state = 'open'`

/** Narrows partners and keys. Keys come first: the removal of a partner then has few left to revoke at once. */
function* narrow(
  dialect: Dialect,
  replaced: ReplacedStore,
  context: AuditContext,
): Work<Restoration['narrowed']> {
  const modules = modulesWith((yield* query(SELECT_MODULES)).map(MODULES.read))
  const others = modulesWith((yield* query(SELECT_MODULES, [], replaced.read)).map(MODULES.read))
  const keys = yield* narrowRows(dialect, replaced, context, 'partner_key', KEYS, narrowKey)
  const partners = yield* narrowRows(
    dialect,
    replaced,
    context,
    'partner',
    PARTNERS,
    (partner, other) => narrowPartner(partner, other, modules, others),
  )
  return { partners, keys }
}

/** @returns The ids of the webhooks that were active. */
function* disableWebhooks(dialect: Dialect, context: AuditContext): Work<string[]> {
  const webhooks = (yield* query(SELECT_WEBHOOKS)).map(WEBHOOKS.read)
  const ids = webhooks.filter(({ state }) => state === 'active').map(({ id }) => id)
  const disabled = ids.map((id) =>
    changeWebhook(webhooks, id, 'webhook.disabled', context, toDisabledWebhook)
  )
  yield* writeRows(upsertWebhooksSql(dialect), WEBHOOKS, disabled.map(({ result }) => result!))
  yield* appendAuditRecords(dialect, disabled.flatMap(({ auditRecords }) => auditRecords), context)
  return ids
}

/** @returns How many rows were changed. */
function* narrowRows<R>(
  dialect: Dialect,
  replaced: ReplacedStore,
  context: AuditContext,
  table: string,
  { columns, read }: RowFormat<R>,
  narrowRow: (row: R, replaced: R | undefined) => readonly Change[],
): Work<number> {
  const [id] = columns
  const selectReplaced = `
    SELECT ${safeColumns(columns)} FROM partner_api.${table} WHERE ${id} IN ${idsSql(replaced.dialect, '$1')}`
  let count = 0
  for (let after = '';;) {
    const rows = yield* query(pageSql(table, columns, hasNotEnded), [after, pageRows])
    if (rows.length === 0) return count
    const ids = rows.map(([id]) => String(id))
    after = ids.at(-1)!
    const records = rows.map(read)
    const replacedRows = yield* query(selectReplaced, [idsText(ids)], replaced.read)
    const describeRow = (id: string) => `the row ${id} of ${table}`
    const others = new Map(replacedRows.map((row) => {
      const id = String(row[0])
      return [id, usingReplaced(() => read(withIntegers(columns, row)), describeRow(id))]
    }))
    const changes = records.map((record, index) => {
      const id = ids[index]!
      return usingReplaced(() => narrowRow(record, others.get(id)), describeRow(id))
    })
    count += changes.filter(({ length }) => length > 0).length
    yield* applyAudited(dialect, changes.flat(), context)
  }
}

/** A row of safe columns with its integers. @throws for one that only another program can have written. */
function withIntegers(columns: readonly string[], row: StoredRow): StoredRow {
  return row.map((value, index) => {
    const column = columns[index]!
    if (value === null || !INTEGER_COLUMNS.has(column)) return value
    if (Number.isSafeInteger(Number(value))) return Number(value)
    throw new Error(`${column} is ${value}, beyond ±2^53`)
  })
}

function* revokeClaims(dialect: Dialect, context: AuditContext): Work<number> {
  let count = 0
  for (let after = '';;) {
    const rows = yield* query(pageSql('claim', CLAIMS.columns, isOpen), [after, pageRows])
    if (rows.length === 0) return count
    count += rows.length
    after = String(rows.at(-1)![0])
    const changes = rows.map(CLAIMS.read)
      .map((claim) => ({ type: 'claim.revoked', claim: { ...claim, state: 'revoked' } }) as const)
    yield* applyAudited(dialect, changes, context)
  }
}

/** The rows after an id, in the order of their ids: the first column. */
function pageSql(table: string, columns: readonly string[], condition: string): string {
  const [id] = columns
  return `SELECT ${columns} FROM partner_api.${table} WHERE ${id} > $1 AND ${condition}
    ORDER BY ${id} LIMIT CAST($2 AS BIGINT)`
}

function* applyAudited(dialect: Dialect, changes: readonly Change[], context: AuditContext): Work<void> {
  const { auditRecords } = yield* applyFacts(dialect, changes, context.at)
  yield* appendAuditRecords(dialect, auditRecords, context)
}
