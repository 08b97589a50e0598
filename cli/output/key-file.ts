import { open, rm } from 'node:fs/promises'
import { Failure } from '../failure.ts'
import { reasonOf } from '../input/lines.ts'

/** Writes a new key to its file, if it is to have one. @throws {Failure} `key_not_written` */
export type SaveKey = (key: string, id: string) => Promise<void>

/**
 * Runs a command that makes a key. The file for the key is made first, so that no key is lost for want of one; only its
 * owner may read it, and it goes again when the command fails.
 *
 * @throws {Failure} `file_not_created` when the file exists, or cannot be made.
 */
export async function withKeyFile(
  path: string | undefined,
  command: (save: SaveKey) => Promise<void>,
): Promise<void> {
  if (path === undefined) return await command(async () => {})
  // `wx` follows no link and replaces nothing.
  const file = await open(path, 'wx', 0o600).catch((error) => {
    const reason = error.code === 'EEXIST' ? 'it exists already, and is never overwritten' : reasonOf(error)
    throw new Failure(1, 'file_not_created', `Nothing was changed: ${path} can't be created: ${reason}.`)
  })
  let isSaved = false
  try {
    await command(async (key, id) => {
      await file.writeFile(`${key}\n`).then(() => file.sync()).catch((error) => {
        const sentence = `Key ${id} was issued, but it can't be written to ${path} and is lost`
        const advice = `To revoke it: partner-api keys revoke ${id}`
        throw new Failure(1, 'key_not_written', `${sentence}: ${reasonOf(error)}. ${advice}`)
      })
      isSaved = true
    })
  } finally {
    await file.close()
    if (!isSaved) await rm(path, { force: true })
  }
}
