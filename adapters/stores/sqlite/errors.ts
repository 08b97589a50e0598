/** Errors of a file, which say what could not be done and why. */
import type { DatabaseSync } from 'node:sqlite'
import type { Remedy } from '../../../core/lib/remedy.ts'
import { StoreError } from '../../../core/ports/store-error.ts'
import { BUSY_TIMEOUT_MS } from './busy-retry.ts'

/** SQLite's messages for FULL, IOERR, CORRUPT, READONLY, NOTADB and CANTOPEN. */
const fileTroubles = [
  'database or disk is full',
  'disk I/O error',
  'database disk image is malformed',
  'attempt to write a readonly database',
  'file is not a database',
  'unable to open database file',
  // CORRUPT in a full-text index.
  'fts5: corrupt',
]

/** Turns an error about the file or its values into a `StoreError`, and returns any other as it is. */
export function toStoreError(
  driver: DatabaseSync,
  error: unknown,
  file: string,
  what: 'read' | 'changed',
): unknown {
  if (!driver.isOpen) return closedError(file)
  const reason = errorMessage(error)
  // An integer beyond ±2^53, which only another program can have written.
  if (error instanceof RangeError && what === 'read') return unusableError(file, what, error)
  if (error instanceof StoreError || !fileTroubles.some((trouble) => reason.includes(trouble))) return error
  // SQLITE_CORRUPT_VTAB: only search has virtual tables.
  const index = (error as { readonly errcode?: number }).errcode === 267 ? 'fts5' : reason
  return unusableError(file, what, error, searchIndexRemedy(index, file).remedy)
}

export function closedError(file: string): StoreError {
  return new StoreError('unreachable', `The store ${file} is closed.`)
}

export function unusableError(
  file: string,
  what: 'opened' | 'read' | 'changed',
  cause: unknown,
  remedy?: Remedy,
): StoreError {
  const message = `The store ${file} cannot be ${what}: ${errorMessage(cause)}.`
  return new StoreError('unreachable', message, { cause, ...(remedy && { remedy }) })
}

/** The remedy for damage of the search index. */
export function searchIndexRemedy(damage: string, file: string): { readonly remedy?: Remedy } {
  if (!/fts5/i.test(damage)) return {}
  const args = ['--from', `sqlite:${file}`, '--to', `sqlite:${file}.mended`]
  return { remedy: { purpose: 'To build its search index again', command: 'store copy', args } }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function replacedMeanwhileError(file: string): StoreError {
  return new StoreError('refused', `Another process has created or replaced ${file} meanwhile: start again.`)
}

export function lockedError(file: string, hasWaited: boolean, cause: unknown): StoreError {
  const waited = hasWaited ? ` and has been for ${BUSY_TIMEOUT_MS / 1000} seconds` : ''
  return new StoreError(
    'unreachable',
    `The store ${file} cannot be changed: another process is writing to it${waited}.`,
    { cause },
  )
}
