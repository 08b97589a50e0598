import * as store from './migrations/001-store.ts'
import * as finishedCopies from './migrations/002-finished-copies.ts'
import * as lists from './migrations/003-lists.ts'
import * as endsAndPruning from './migrations/004-ends-and-pruning.ts'

/** A step of the schema. */
export interface Migration {
  readonly name: string
  /** Frozen text: what it made in one store, it has made in every store. */
  readonly sql: string
  /** The oldest version of the schema whose programs may go on while replicas are replaced by those of this one. */
  readonly servedFrom: number
}

/** In order; a migration's version is its place, from 1. */
export const MIGRATIONS: readonly Migration[] = [store, finishedCopies, lists, endsAndPruning]

/** The version of the schema that this program makes. */
export const LATEST: number = MIGRATIONS.length
