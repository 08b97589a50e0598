/** What every list that pages says of it, and how it turns its pages. */
import { integer, maxValue, metadata, minValue, number, pipe, string } from 'valibot'
import { after } from '../after.ts'
import type { Cursors } from '../http/cursor.ts'
import { type Parameter, single } from '../http/parameters.ts'
import { Problem } from '../http/problem.ts'
import type { MaybePromise } from '../ports.ts'
import { VERSION } from '../version.ts'
import type { Reply } from './route.ts'

/** What can be said of a cursor. */
export const CURSOR: Readonly<{ pattern: string; maxLength: number }> = {
  pattern: '^[A-Za-z0-9_.-]+$',
  /** As long as a target may be: a cursor is never longer. */
  maxLength: 8192,
}

/** The parameter that says how many rows there may be, 1 to `max`. */
export function limitParameter(max: number, fallback: number, description: string): Parameter<number> {
  const message = `must be an integer from 1 to ${max}`
  const schema = pipe(
    number(message),
    integer(message),
    minValue(1, message),
    maxValue(max, message),
    metadata({ format: 'int32', examples: [20] }),
  )
  return single('integer', schema, fallback, description)
}

/** The parameter that asks for the next page. */
export const cursorParameter: Parameter<string | undefined> = single(
  'text',
  pipe(string(), metadata({ ...CURSOR, examples: [] })),
  undefined,
  '`next_cursor` of the page before',
)

/** The place of a row in the order of its list: what the rows are ordered by, and what tells equal ones apart. */
export type Place = readonly [key: string | number, id: string]

/** A list that pages. */
export interface Listing<Row> {
  /** Slug of the partner that it is for. */
  readonly partner: string
  /** What its order and its rows follow from, as a JSON value: a cursor belongs to a list with the same. */
  readonly of: unknown
  /** Reads at most `limit` rows, those after a place. */
  read(after: Place | undefined, limit: number): MaybePromise<readonly Row[]>
  placeOf(row: Row): Place
  present(row: Row): unknown
}

/**
 * One page of a list, asked for with its two parameters.
 *
 * @throws {Problem} `invalid_cursor` for a cursor of another list, or of nobody's making.
 */
export function readPage<Row>(
  cursors: Cursors,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
  { partner, of, read, placeOf, present }: Listing<Row>,
): MaybePromise<Reply> {
  const bound = JSON.stringify([VERSION, partner, of])
  const position = cursor === undefined ? undefined : cursors.open(bound, cursor)
  if (cursor !== undefined && position === undefined) throw new Problem('invalid_cursor')
  const [key = '', id = ''] = position ?? []
  // One more than a page holds tells whether there is another.
  return after(read(position && [key, String(id)], limit + 1), (rows) => {
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const next = last === undefined ? null : cursors.seal(bound, placeOf(last))
    return { data: shown.map(present), page: { limit, has_more: next !== null, next_cursor: next } }
  })
}
