import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StoreError } from '../../../core/ports/store-error.ts'

/** Far below every staleness bound except 0; a check costs some microseconds. */
const checkIntervalMs = 5

/**
 * Remembers which file a path leads to. When the file is deleted or replaced while it is open, SQLite goes on with the
 * old one and reports nothing; the same holds for the write-ahead log and its index beside it. Those two are remembered
 * at the first check: after a connection's first statement, no other process removes them when it closes.
 *
 * @param file The path of a file that was just opened. A store in memory is not watched.
 */
export function trackFileIdentity(file: string) {
  if (file === ':memory:') return { check() {}, checkThrottled() {} }
  const paths = watchedPaths(file)
  const identities: (string | undefined)[] = [identityOf(file) ?? 'deleted']
  let lastCheckAt = -Infinity
  let isReplaced = false

  /** @throws {StoreError} `unreachable` while the open file is not the one that other processes open. */
  function check(): void {
    lastCheckAt = performance.now()
    isReplaced = false
    for (const [index, path] of paths.entries()) {
      const found = identityOf(path)
      if ((identities[index] ??= found) !== found) isReplaced = true
    }
    if (!isReplaced) return
    throw new StoreError(
      'unreachable',
      `The store ${file} is not the file that was opened: it, or a file beside it, was deleted or replaced meanwhile. ` +
        'Start again to use the current file.',
    )
  }

  return {
    check,
    /** Checks only when the last check is some milliseconds old. */
    checkThrottled() {
      if (isReplaced || performance.now() - lastCheckAt >= checkIntervalMs) check()
    },
  }
}

/** The path itself, which may become a link to another file, and SQLite's files beside the file at its end. */
function watchedPaths(file: string): readonly string[] {
  try {
    const real = realpathSync(file)
    return [resolve(file), `${real}-wal`, `${real}-shm`]
  } catch {
    return [file]
  }
}

/** The identity of a file: another file at the same path has another one. `undefined` if there is no file. */
export function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && `${found.dev} ${found.ino}`
}
