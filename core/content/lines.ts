import type { ContentKind, ContentRecords } from './records.ts'

/** What is wrong with one field of one line. */
export interface LineError {
  /** From 1, blank lines counted. */
  readonly line: number
  /** The field, as in `links[0].url`; `null` when it is the line as a whole. */
  readonly field: string | null
  /** One clause about the field or line, such as `must be a whole number from 0, not "ten"`. */
  readonly reason: string
}

/** Why lines are not taken. */
export interface LineErrors {
  /** The first 1,000, by line. */
  readonly errors: readonly LineError[]
  /** How many there are in all. */
  readonly errorCount: number
}

/** Lines that are all right in themselves. */
export interface LineRecords<K extends ContentKind> {
  readonly records: readonly ContentRecords[K][]
}

export function readContentLines<K extends ContentKind>(
  kind: K,
  lines: Iterable<string>,
): LineRecords<K> | LineErrors {
  throw new Error(`not yet ${kind} ${lines}`)
}

/** A record as one line of JSON without a line end: section 8's fields in a fixed order, absent ones `null`. */
export function writeContentLine<K extends ContentKind>(kind: K, record: ContentRecords[K]): string {
  throw new Error(`not yet ${kind} ${record}`)
}
