/** What the rooms of the Postgres store ask of a server. `session.ts` is the only file that knows the driver. */

/**
 * What a column or a parameter can hold. Integers of 64 bits are read as numbers; one beyond ±2^53 is a `StoreError`.
 * Instants, JSON, decimals and lists are read as text.
 */
export type Value = string | number | boolean | null

/** A row, its columns in the order of the statement. */
export type Row = readonly Value[]

/** Runs one statement. Parameters are `$1`, `$2`, …; lists go as the text of `listText`, cast to their type. */
export type Query = <R extends Row>(sql: string, parameters?: readonly Value[]) => Promise<R[]>

/**
 * Connections to one database. Whatever goes wrong with the server or the way to it is a `StoreError` `unreachable`
 * whose message names the place and never a password, a parameter or what a row holds.
 */
export interface Database {
  /** Where it is, without user and password, for messages: `HOST:PORT/NAME`. */
  readonly place: string

  /**
   * One connection for short reads, all of them on their way at once: what is asked first is answered first. A
   * connection that is lost, or silent for longer than a look-up may take, is given up for a new one, on which the
   * read is tried once more if there is time.
   */
  readonly lookUp: Query

  /**
   * To be called when a look-up finds that its server takes no writes. That server took some when it was found: another
   * one may be in its place by now, of whose changes it knows nothing. All connections are given up for others.
   *
   * @throws {StoreError} `unreachable`, unless the address is content with any server.
   */
  leaveReadOnly(): void

  /**
   * One connection for short writes about replicas and quotas, whose last moments may be lost with the server: they
   * are not waited for on its disk. Retried when the server asks for it (40001), never when the connection was lost.
   */
  readonly note: Query

  /** A read on any free connection; tried again on a lost connection and on 40001. */
  readonly read: Query

  /**
   * One statement that writes, on any free connection: a transaction by itself, durable when it is answered, whose
   * locks never wait for us. Run again when the server asks for that (40001, 40P01) and when it was not sent.
   *
   * @throws {StoreError} `unreachable`, with `cause` an `UncertainCommit` when the connection was lost after it was
   * sent: then it may have been done.
   */
  readonly write: Query

  /**
   * Runs `work` in a transaction. It is run again, from its start, when the server asks for that (40001, 40P01) and
   * when the connection was lost before the commit was sent, so it may do nothing but ask.
   *
   * @param options `readOnly`: on one state of the database (REPEATABLE READ READ ONLY). `isSearch`: the server
   * gives up a statement that takes longer than a quarter of what a look-up may take.
   * @throws {StoreError} `unreachable`, with `cause` an `UncertainCommit` when the connection was lost while it
   * committed: then it may have been done.
   */
  transaction<T>(
    work: (query: Query, rollback: () => void) => Promise<T>,
    options?: { readonly readOnly: boolean; readonly isSearch?: boolean },
  ): Promise<T>

  /**
   * Has `heard` called for what others send with `notify`, and once after every gap in which something may have been
   * missed. Where the server or a pooler has no LISTEN, nothing ever is.
   */
  listen(heard: () => void): void

  /** Tells the listeners of all replicas. Never rejects: whoever hears nothing finds out by itself. */
  notify(): Promise<void>

  /** Ends all connections; what is under way is given two seconds. */
  close(): Promise<void>
}

/** The connection was lost after what commits was sent and before it was answered. */
export class UncertainCommit extends Error {
  override readonly name = 'UncertainCommit'
}

/**
 * An expression that has the transaction acknowledged only once it is on disk, also where the server, database or role
 * defaults to `synchronous_commit = off`. `remote_apply`, the only stronger value, is kept.
 */
export const SET_DURABLE_COMMIT =
  "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"

/** A list as the text of a Postgres array, for `$1::text[]` and its like. */
export function listText(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value === null ? 'NULL' : quoted(String(value))).join(',')}}`
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** What the server said to a statement. Its message is the server's; what rows and parameters held is left out. */
export class SqlError extends Error {
  override readonly name = 'SqlError'
  /** SQLSTATE: five characters, such as `23505` for a key that is there already. */
  readonly code: string
  /** The constraint that did not hold, if it was one. */
  readonly constraint: string | undefined

  constructor(code: string, message: string, constraint?: string) {
    super(message)
    this.code = code
    this.constraint = constraint
  }
}
