import { compareCodePoints } from '../../../core/content/fold.ts'
import type { ReadableTable, RowKey } from './archive.ts'
import type { TableForm } from './tables.ts'

/** Enough that asking costs little beside reading, and few enough to hold and to write at once. */
const pageRows = 500

/** What lies between two keys, on both sides. */
export interface Stretch<R> {
  /** The texts of the rows of each side, in the order of their keys. */
  readonly texts: readonly [one: readonly string[], other: readonly string[]]
  /** Rows of the one side of which the other has none with the key. */
  readonly missing: readonly R[]
  /** Rows of the one side that the other has otherwise. */
  readonly changed: readonly R[]
  /** Rows of the other side of which the one has none with the key. */
  readonly surplus: readonly R[]
  /** The first row that is missing, changed or surplus. */
  readonly firstDifference: R | undefined
}

/**
 * Compares two tables from their first key to their last, a page of each at a time. The next pages are read while a
 * stretch is worked on.
 *
 * @param now Rows that are not to be there at this instant are passed over on both sides.
 */
export async function* compareTables<R>(
  form: TableForm<R>,
  one: ReadableTable<R>,
  other: ReadableTable<R>,
  now: number,
): AsyncGenerator<Stretch<R>> {
  const read = async (after: RowKey | undefined) =>
    await Promise.all([one.read(after, pageRows), other.read(after, pageRows)])

  for (let pages: Promise<readonly (readonly R[])[]> | undefined = read(undefined); pages !== undefined;) {
    const [ours, theirs] = await pages as [readonly R[], readonly R[]]
    const end = commonEnd(form, ours, theirs)
    pages = end === undefined ? undefined : read(end)
    // Whoever stops in the middle asks for no more of them, and has no use for why they could not be read.
    pages?.catch(() => undefined)
    yield merge(until(form, ours, end, now), until(form, theirs, end, now))
  }
}

/** The key up to which both sides are known, `undefined` when both are known to their ends. */
function commonEnd<R>(form: TableForm<R>, ...sides: readonly (readonly R[])[]): RowKey | undefined {
  const ends = sides.filter((rows) => rows.length === pageRows).map((rows) => form.key(rows.at(-1)!))
  return ends.sort(compareKeys)[0]
}

/** A row with what it is compared by. */
interface Item<R> {
  readonly row: R
  readonly key: RowKey
  readonly text: string
}

function until<R>(form: TableForm<R>, rows: readonly R[], end: RowKey | undefined, now: number): Item<R>[] {
  const items: Item<R>[] = []
  for (const row of rows) {
    const key = form.key(row)
    if (end !== undefined && compareKeys(key, end) > 0) break
    if (form.holds?.(row, now) ?? true) items.push({ row, key, text: form.text(row) })
  }
  return items
}

function merge<R>(ours: readonly Item<R>[], theirs: readonly Item<R>[]): Stretch<R> {
  const missing: R[] = []
  const changed: R[] = []
  const surplus: R[] = []
  let firstDifference: R | undefined
  for (let mine = 0, yours = 0; mine < ours.length || yours < theirs.length;) {
    const our = ours[mine]
    const their = theirs[yours]
    const order = our === undefined ? 1 : their === undefined ? -1 : compareKeys(our.key, their.key)
    if (order <= 0) mine++
    if (order >= 0) yours++
    if (order === 0 && our!.text === their!.text) continue
    firstDifference ??= (our !== undefined && order <= 0 ? our : their!).row
    if (order < 0) missing.push(our!.row)
    else if (order > 0) surplus.push(their!.row)
    else changed.push(our!.row)
  }
  const texts = [ours.map(({ text }) => text), theirs.map(({ text }) => text)] as const
  return { texts, missing, changed, surplus, firstDifference }
}

/** As both stores order their rows. */
function compareKeys(a: RowKey, b: RowKey): number {
  for (let part = 0; part < a.length; part++) {
    const left = a[part]!
    const right = b[part]!
    const order = typeof left === 'number'
      ? left - (right as number)
      : compareCodePoints(left, right as string)
    if (order !== 0) return order
  }
  return 0
}
