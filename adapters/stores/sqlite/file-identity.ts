import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StoreError } from '../store-error.ts'

/** Tells whether the paths of a store still lead to the files that are open. */
export interface FileIdentity {
  /**
   * @throws {StoreError} `unreachable`, from then on at every call: what is open is not what others open, who see
   * nothing of what is written here, and of whom nothing is seen here.
   */
  check(): void
  /** The same, but that it looks only when the last look is some milliseconds old. */
  checkThrottled(): void
}

/** Far below every bound on staleness but 0, and often enough to cost nothing: a look takes some microseconds. */
const CHECK_INTERVAL_MS = 5

/**
 * Remembers which file a path leads to. A file can be deleted, or another moved to its place, while it is open: SQLite
 * goes on with the one that it has and notices nothing. So it does with the write-ahead log and its index beside it.
 * Those are remembered at the first check: from a connection's first statement on, nobody else's end removes them.
 *
 * @param file A path to what was just opened; nothing is watched of a store in memory.
 */
export function trackFileIdentity(file: string): FileIdentity {
  if (file === ':memory:') return { check() {}, checkThrottled() {} }
  const paths = watchedPaths(file)
  const identities = [identityOf(file)]
  let lastCheckAt = -Infinity
  let isReplaced = identities[0] === undefined

  function check(): void {
    lastCheckAt = performance.now()
    for (let place = 0; !isReplaced && place < paths.length; place++) {
      const found = identityOf(paths[place]!)
      if (identities[place] === undefined) identities[place] = found
      else if (found !== identities[place]) isReplaced = true
    }
    if (!isReplaced) return
    throw new StoreError(
      'unreachable',
      `The store ${file} is not the file that was opened: it, or a file beside it, was deleted or replaced meanwhile. ` +
        'Start again to go on with what is there now.',
    )
  }

  return {
    check,
    checkThrottled() {
      if (isReplaced || performance.now() - lastCheckAt >= CHECK_INTERVAL_MS) check()
    },
  }
}

/** The path itself, which may come to lead elsewhere, and what SQLite keeps beside the file at its end. */
function watchedPaths(file: string): readonly string[] {
  try {
    const real = realpathSync(file)
    return [resolve(file), `${real}-wal`, `${real}-shm`]
  } catch {
    return [file]
  }
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, statOptions)
  return found && `${found.dev} ${found.ino}`
}

const statOptions = { throwIfNoEntry: false } as const
