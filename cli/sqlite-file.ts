import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { Failure, failureOf } from './failure.ts'

/**
 * Opens the file of a store. SQLite says no more than that it could not, where somebody can see why.
 *
 * @throws {Failure} with what stands in the way, or what `open` throws.
 */
export async function openFile<T>(file: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    const { exitCode, code } = await failureOf(error)
    const obstacle = code === 'store_unavailable' ? obstacleAt(file) : undefined
    if (obstacle === undefined) throw error
    throw new Failure(exitCode, code, `The store ${file} cannot be used: ${obstacle}.`)
  }
}

/** Those of a store's files that accounts other than their owner can read or write. */
export function exposedFiles(file: string): string[] {
  // Windows has no such modes.
  if (process.platform === 'win32') return []
  return [file, `${file}-wal`, `${file}-shm`].filter((path) => {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
}

function obstacleAt(file: string): string | undefined {
  const folder = dirname(file)
  const inFolder = refusal(folder, constants.W_OK | constants.X_OK)
  if (inFolder === 'ENOENT' || inFolder === 'ENOTDIR') return `there is no folder ${folder}`
  if (refusal(`${file}/.`, constants.F_OK) === undefined) return 'it is a folder'
  if (isForbidden(file, constants.R_OK)) return 'this account may not read it'
  if (isForbidden(file, constants.W_OK)) return 'this account may read but not write it'
  return inFolder && `this account may not write in ${folder}, where SQLite keeps more files`
}

function isForbidden(file: string, mode: number): boolean {
  return !['ENOENT', undefined].includes(refusal(file, mode))
}

/** What the system calls it that a path may not be used so. */
function refusal(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}
