import { open, rm } from 'node:fs/promises'
import { Failure } from '../failure.ts'
import { reasonOf } from '../input/lines.ts'

/** A file that is there for a key before the key is. */
export interface KeyFile {
  /** @throws {Failure} `key_not_written` */
  write(key: string, id: string): Promise<void>
  /** Closes the file, and removes it when nothing was written. */
  close(): Promise<void>
}

/**
 * Makes a file that its owner alone may read.
 *
 * @throws {Failure} `file_not_created` when it exists, or cannot be made.
 */
export async function createKeyFile(path: string): Promise<KeyFile> {
  // `wx` follows no link and replaces nothing.
  const file = await open(path, 'wx', 0o600).catch((error) => {
    const reason = error.code === 'EEXIST' ? 'it exists already, and is never overwritten' : reasonOf(error)
    throw new Failure(1, 'file_not_created', `Nothing was changed: ${path} can't be created: ${reason}.`)
  })
  let isWritten = false
  return {
    async write(key, id) {
      try {
        await file.writeFile(`${key}\n`)
        await file.sync()
        isWritten = true
      } catch (error) {
        throw new Failure(
          1,
          'key_not_written',
          `Key ${id} was issued, but it can't be written to ${path} and is lost: ${reasonOf(error)}. ` +
            `To revoke it: partner-api keys revoke ${id}`,
        )
      }
    },
    async close() {
      await file.close()
      if (!isWritten) await rm(path, { force: true })
    },
  }
}
