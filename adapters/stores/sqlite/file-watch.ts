import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StoreError } from '../store-error.ts'

/** Tells whether the paths of a store still lead to the files that are open. */
export interface FileWatch {
  /**
   * @throws {StoreError} `unreachable`, from then on at every call: what is open is not what others open, who see
   * nothing of what is written here, and of whom nothing is seen here.
   */
  check(): void
  /** The same, but that it looks only when the last look is some milliseconds old. */
  checkNowAndThen(): void
}

/** Far below every bound on staleness but 0, and often enough to cost nothing: a look takes some microseconds. */
const LOOK_EVERY_MS = 5

/**
 * Remembers which file a path leads to. A file can be deleted, or another moved to its place, while it is open: SQLite
 * goes on with the one that it has and notices nothing. So it does with the write-ahead log and its index beside it.
 * Those are remembered at the first check: from a connection's first statement on, nobody else's end removes them.
 *
 * @param file A path to what was just opened; nothing is watched of a store in memory.
 */
export function watchFile(file: string): FileWatch {
  if (file === ':memory:') return { check() {}, checkNowAndThen() {} }
  const paths = pathsOf(file)
  const seen = [identityOf(file)]
  let lastLook = -Infinity
  let isLost = seen[0] === undefined

  function check(): void {
    lastLook = performance.now()
    for (let place = 0; !isLost && place < paths.length; place++) {
      const found = identityOf(paths[place]!)
      if (seen[place] === undefined) seen[place] = found
      else if (found !== seen[place]) isLost = true
    }
    if (!isLost) return
    throw new StoreError(
      'unreachable',
      `The store ${file} is not the file that was opened: it, or a file beside it, was deleted or replaced meanwhile. ` +
        'Start again to go on with what is there now.',
    )
  }

  return {
    check,
    checkNowAndThen() {
      if (isLost || performance.now() - lastLook >= LOOK_EVERY_MS) check()
    },
  }
}

/** The path itself, which may come to lead elsewhere, and what SQLite keeps beside the file at its end. */
function pathsOf(file: string): readonly string[] {
  try {
    const real = realpathSync(file)
    return [resolve(file), `${real}-wal`, `${real}-shm`]
  } catch {
    return [file]
  }
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, quietly)
  return found && `${found.dev} ${found.ino}`
}

const quietly = { throwIfNoEntry: false } as const
