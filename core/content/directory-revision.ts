import { all, type MaybePromise } from '../lib/promise.ts'
import type { Directory } from '../ports/directory.ts'
import type { FactSource, Revision } from '../ports/facts.ts'

/**
 * The revisions of the store and of a custom directory as one. While the directory has none, the service goes on as if
 * its content changed with every read, and nothing waits for it.
 */
export function combineRevisions(
  store: Pick<FactSource, 'revision'>,
  directory: Required<Pick<Directory, 'directoryRevision'>>,
  { onUnavailable, onRecovered }: { onUnavailable(error: unknown): void; onRecovered(): void },
) {
  let isAvailable = true
  let pending = 0
  let reads = 0

  function succeed(revision: string): string {
    if (!isAvailable) onRecovered()
    isAvailable = true
    return revision
  }

  function fail(error: unknown): string {
    if (isAvailable) onUnavailable(error)
    isAvailable = false
    return unknown()
  }

  function unknown(): string {
    return `unknown ${++reads}`
  }

  function read(): MaybePromise<string> {
    if (!isAvailable && pending > 0) return unknown()
    try {
      const revision = directory.directoryRevision()
      if (!(revision instanceof Promise)) return succeed(revision)
      pending++
      const settled = revision.then(succeed, fail).finally(() => pending--)
      return isAvailable ? settled : unknown()
    } catch (error) {
      return fail(error)
    }
  }

  return {
    revision: (): MaybePromise<Revision> =>
      all(
        [store.revision(), read()],
        ([{ facts, content }, own]) => ({ facts, content: `${content} ${own}` }),
      ),
    /** Reads the directory's revision, and whether it has one. */
    isAvailable: (): MaybePromise<boolean> => all([read()], () => isAvailable),
  }
}
