import type { MaybePromise } from './promise.ts'

const maxPageRows = 1000

/**
 * Reads a list to its end, a page at a time. Rows that are added behind the last one read are read as well.
 *
 * @param readPage Reads at most `limit` rows after a row of the page before, or from the start.
 * @param wanted How many rows the caller takes at most, 1 or more: no page is larger than that.
 */
export async function* readPages<T>(
  readPage: (after: T | undefined, limit: number) => MaybePromise<readonly T[]>,
  wanted: number = maxPageRows,
): AsyncGenerator<T, void, undefined> {
  const pageRows = Math.min(wanted, maxPageRows)
  let after: T | undefined
  for (;;) {
    const page = await readPage(after, pageRows)
    yield* page
    if (page.length < pageRows) return
    after = page.at(-1)
  }
}
