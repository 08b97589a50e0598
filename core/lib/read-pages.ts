import type { MaybePromise } from './promise.ts'

const maxPageRows = 1000

type ReadPage<T> = (after: T | undefined, limit: number) => MaybePromise<readonly T[]>

/**
 * Reads a list to its end, page by page. Rows that are added after the current position are read as well.
 * @param wanted The most rows that the caller takes, 1 or more.
 */
export async function* readPages<T>(
  readPage: ReadPage<T>,
  wanted: number = maxPageRows,
): AsyncGenerator<T, void, undefined> {
  for await (const page of pagesOf(readPage, Math.min(wanted, maxPageRows))) yield* page
}

/** The pages of a list, none of them empty. */
export async function* pagesOf<T>(
  readPage: ReadPage<T>,
  pageRows: number = maxPageRows,
): AsyncGenerator<readonly T[], void, undefined> {
  let after: T | undefined
  for (;;) {
    const page = await readPage(after, pageRows)
    if (page.length > 0) yield page
    if (page.length < pageRows) return
    after = page.at(-1)
  }
}
