import type { Cursors } from '../http/cursor.ts'
import type { HandlerResult } from '../http/message.ts'
import { Problem } from '../http/problem.ts'
import { kindOf } from '../lib/options.ts'
import { andThen, type MaybePromise, toPromise } from '../lib/promise.ts'
import { API_VERSION } from '../model.ts'

/** The position of a row in its list: its sort key and, for equal keys, its id. */
export type PagePosition = readonly [key: string | number, id: string]

/** A list that is read in pages: its rows in order, their positions, and how responses show them. */
export interface PagedList<Row> {
  readonly partner: string
  /** A JSON value that determines rows and order: cursors only work for lists with the same one. */
  readonly identity: unknown
  read(after: PagePosition | undefined, limit: number): MaybePromise<readonly Row[]>
  positionOf(row: Row): PagePosition
  present(row: Row): unknown
}

/** @throws {Problem} `invalid_cursor` for a cursor that was altered or belongs to another list. */
export function readPage<Row>(
  cursors: Cursors,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
  { partner, identity, read, positionOf, present }: PagedList<Row>,
): MaybePromise<HandlerResult> {
  const bound = JSON.stringify([API_VERSION, partner, identity])
  const position = cursor === undefined ? undefined : cursors.open(bound, cursor)
  if (cursor !== undefined && position === undefined) throw new Problem('invalid_cursor')
  const [key = '', id = ''] = position ?? []
  // One extra row shows whether there is another page.
  const found = toPromise(read(position && [key, String(id)], limit + 1)) as MaybePromise<readonly Row[]>
  return andThen(found, (rows) => {
    if (!Array.isArray(rows)) {
      throw new TypeError(`read of a list must return an array of rows, not ${kindOf(rows)}.`)
    }
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const next = last === undefined ? null : cursors.seal(bound, checkPosition(positionOf(last)))
    return { data: shown.map(present), page: { limit, has_more: next !== null, next_cursor: next } }
  })
}

/** JSON has no NaN and no Infinity: the next page would begin at another row, or nowhere. */
function checkPosition(position: PagePosition): PagePosition {
  const [key, id] = position
  if ((typeof key === 'string' || Number.isFinite(key)) && typeof id === 'string') return position
  throw new TypeError('positionOf must return a text or finite number, and the id as a text.')
}
