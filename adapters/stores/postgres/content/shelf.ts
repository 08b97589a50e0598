import { listText, type Query } from '../connection/database.ts'

/** What became of a record that was imported. */
export type Outcome = 'created' | 'replaced' | 'unchanged'

/** A record, and when it changed last. */
export interface Kept<R> {
  readonly record: R
  readonly updatedAt: number
}

/** Where the records of one kind are kept, as far as one transaction goes. */
export interface Shelf<R> {
  /** So many records are put or written at once, at most. */
  readonly atOnce: number
  /** Creates or replaces one record after the other, in few statements. @returns What became of each. */
  put(records: readonly R[], now: number): Promise<readonly Outcome[]>
  /** Creates or replaces records, each slug once, even if that changes nothing. */
  write(kept: readonly Kept<R>[]): Promise<void>
  /** Which of these there are. */
  find(slugs: readonly string[]): Promise<ReadonlySet<string>>
  /** Which of these are needed by records of any kind that are not among them. */
  findNeeded(slugs: readonly string[]): Promise<ReadonlySet<string>>
  remove(slugs: readonly string[]): Promise<void>
  /** Writes what was gathered meanwhile. To be called when all else is done. */
  finish(): Promise<void>
}

/** A record as it is to be kept. */
export interface Draft {
  readonly slug: string
  /** Equal records have equal texts. */
  readonly text: string
}

/**
 * What becomes of each record when one is put after the other.
 *
 * @param texts What is there, by slug; afterwards what is there then.
 * @returns The outcomes, and of each slug that was created or replaced the last draft.
 */
export function putInOrder<D extends Draft>(
  drafts: readonly D[],
  texts: Map<string, string>,
): { outcomes: Outcome[]; changed: D[] } {
  const changed = new Map<string, D>()
  const outcomes = drafts.map((draft): Outcome => {
    const before = texts.get(draft.slug)
    if (before === draft.text) return 'unchanged'
    texts.set(draft.slug, draft.text)
    changed.set(draft.slug, draft)
    return before === undefined ? 'created' : 'replaced'
  })
  return { outcomes, changed: [...changed.values()] }
}

/** What a shelf of one table can do without knowing more of its records than where their slugs are. */
export function openTable(
  query: Query,
  table: string,
  primary: string,
): Pick<Shelf<unknown>, 'find' | 'findNeeded' | 'remove' | 'finish'> {
  const these = `FROM partner_api.${table} WHERE ${primary} = ANY ($1::text[])`
  return {
    async find(slugs) {
      const rows = await query<[slug: string]>(`SELECT ${primary} ${these}`, [listText(slugs)])
      return new Set(rows.map(([slug]) => slug))
    },
    findNeeded: () => Promise.resolve(new Set()),
    async remove(slugs) {
      await query(`DELETE ${these}`, [listText(slugs)])
    },
    finish: () => Promise.resolve(),
  }
}
