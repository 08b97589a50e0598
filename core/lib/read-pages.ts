import type { MaybePromise } from './promise.ts'

const maxPageRows = 1000

/**
 * Reads a list to its end, page by page. Rows that are added after the current position are read as well.
 * @param wanted The most rows that the caller takes, 1 or more.
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
