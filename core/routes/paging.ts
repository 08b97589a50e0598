/** What every list that pages says of it, and how it turns its pages. */
import { integer, maxValue, metadata, minValue, number, pipe, string } from 'valibot'
import { CURSOR_FORMAT } from '../http/cursor.ts'
import type { Cursors } from '../http/cursor.ts'
import { API_VERSION } from '../http/headers.ts'
import type { HandlerResult } from '../http/message.ts'
import { Problem } from '../http/problem.ts'
import { type ParameterDef, single } from '../http/query.ts'
import { andThen, type MaybePromise } from '../lib/promise.ts'

/** The parameter that says how many rows there may be, 1 to `max`. */
export function limitParameter(max: number, fallback: number, description: string): ParameterDef<number> {
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
export const cursorParameter: ParameterDef<string | undefined> = single(
  'text',
  pipe(string(), metadata({ ...CURSOR_FORMAT, examples: [] })),
  undefined,
  '`next_cursor` of the page before',
)

/** The place of a row in the order of its list: what the rows are ordered by, and what tells equal ones apart. */
export type PagePosition = readonly [key: string | number, id: string]

/** A list that pages. */
export interface PagedList<Row> {
  /** Slug of the partner that it is for. */
  readonly partner: string
  /** What its order and its rows follow from, as a JSON value: a cursor belongs to a list with the same. */
  readonly identity: unknown
  /** Reads at most `limit` rows, those after a place. */
  read(after: PagePosition | undefined, limit: number): MaybePromise<readonly Row[]>
  positionOf(row: Row): PagePosition
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
  { partner, identity: of, read, positionOf: placeOf, present }: PagedList<Row>,
): MaybePromise<HandlerResult> {
  const bound = JSON.stringify([API_VERSION, partner, of])
  const position = cursor === undefined ? undefined : cursors.open(bound, cursor)
  if (cursor !== undefined && position === undefined) throw new Problem('invalid_cursor')
  const [key = '', id = ''] = position ?? []
  // One more than a page holds tells whether there is another.
  return andThen(read(position && [key, String(id)], limit + 1), (rows) => {
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const next = last === undefined ? null : cursors.seal(bound, placeOf(last))
    return { data: shown.map(present), page: { limit, has_more: next !== null, next_cursor: next } }
  })
}
