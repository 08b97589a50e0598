/** Declarations that the package exports. valibot's, which need those of the DOM, stay out of them. */

/** What lines may refer to; an absent member is not checked. */
export interface References {
  /** The industries that exist, each with its parent. */
  readonly industries?: ReadonlyMap<string, string | undefined>
  /** Slugs of all partners. */
  readonly partners?: ReadonlySet<string>
}

/** An error in one field of one line. */
export interface LineError {
  /** From 1, blank lines included. */
  readonly line: number
  /** The field, as in `links[0].url`; `null` for the line as a whole. */
  readonly field: string | null
  /** One clause about the field or line, such as `must be a whole number from 0, not "ten"`. */
  readonly reason: string
}

/** The errors in a file of lines. */
export interface LineErrors {
  /** At most 1,000, by line. */
  readonly errors: readonly LineError[]
  /** The number of all errors, 1 or more. */
  readonly errorCount: number
}
