import { closeSync, openSync, readSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { containsKey, KEY_SHAPE } from '../../core/http/redact.ts'
import { describeFileError } from '../files.ts'
import type { Io } from '../output/print.ts'
import { createKeyFinder, type FoundKey, type KeyFinder } from './key-finder.ts'

/** A key and its file. Keys are removed from `path` and `file`. */
export interface Leak extends FoundKey {
  /** `-` for standard input. */
  readonly path: string
  /** Whether the key is in the name of the file or folder, and not in a line. */
  readonly isName: boolean
}

export interface Scan {
  readonly leaks: Leak[]
  readonly unreadable: { readonly path: string; readonly reason: string }[]
  files: number
  binaryFiles: number
}

/**
 * Scans files, folders without `.git` and symbolic links, and for `-` standard input.
 *
 * @param prefix Of the keys, by default any.
 * @param exclude Names of files and folders.
 */
export async function scan(
  paths: readonly string[],
  prefix: string | undefined,
  exclude: readonly string[],
  stdin: Io['stdin'],
  report: (files: number) => void,
): Promise<Scan> {
  const result: Scan = { leaks: [], unreadable: [], files: 0, binaryFiles: 0 }
  const excluded = new Set(['.git', ...exclude].map(toBytes))
  const { searchName, searchStdin, search } = createSearches(result, prefix, report)

  /** @param read Returns why `path` was not searched, or throws. */
  async function tryPath(path: string, read: () => Promise<string | void> | void): Promise<void> {
    const reason = await Promise.resolve().then(read).catch(describeFileError)
    if (reason !== undefined) result.unreadable.push({ path: withoutKeys(toText(path)), reason })
  }

  async function searchFolder(root: string): Promise<void> {
    const folders = [root]
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const path = folder
      await tryPath(path, async () => {
        const options = { withFileTypes: true, encoding: 'latin1' } as const
        for (const entry of await readdir(Buffer.from(path, 'latin1'), options)) {
          if (excluded.has(entry.name)) continue
          const inner = join(path, entry.name)
          searchName(inner, entry.name)
          if (entry.isDirectory()) folders.push(inner)
          // Neither links, which may be circular, nor devices and sockets.
          else if (entry.isFile()) await tryPath(inner, () => void search(inner))
        }
      })
    }
  }

  for (const given of paths) {
    const path = toBytes(given)
    await tryPath(path, async () => {
      if (given === '-') return await searchStdin(stdin)
      const status = await stat(given)
      if (status.isDirectory()) return await searchFolder(path)
      // Reading a pipe or a device may never end.
      return status.isFile() ? search(path) : 'it is neither a file nor a folder: to search a pipe, pass -'
    })
  }
  result.leaks.sort((a, b) =>
    a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line || a.column - b.column
  )
  return result
}

/** Searches one thing each, and adds what they find to the result. */
function createSearches(result: Scan, prefix: string | undefined, report: (files: number) => void) {
  // Small files are read synchronously: that takes a third of the time of asynchronous reads by a pool.
  const buffer = Buffer.allocUnsafeSlow(1 << 18)

  function addKeys(path: string, { keys }: KeyFinder, isName: boolean): void {
    for (const key of keys) {
      const file = key.file && withoutKeys(key.file)
      result.leaks.push({ ...key, file, path: withoutKeys(toText(path)), isName })
    }
  }

  function searchName(path: string, name: string): void {
    if (!containsKey(name)) return
    const finder = createKeyFinder(prefix, 'none')
    finder.add(Buffer.from(name), true)
    addKeys(path, finder, true)
  }

  async function searchStdin(stdin: Io['stdin']): Promise<void> {
    const finder = createKeyFinder(prefix, 'commits')
    for await (const chunk of stdin) finder.add(chunk, false)
    finder.add(Buffer.alloc(0), true)
    addKeys('-', finder, false)
    report(++result.files)
  }

  /** @returns Why it was not searched. */
  function search(path: string): string | undefined {
    let finder = createKeyFinder(prefix, 'none')
    const isText = searchFile(finder, path, buffer)
    if (finder.keys.length > 0) {
      finder = createKeyFinder(prefix, 'lines')
      searchFile(finder, path, buffer)
    }
    addKeys(path, finder, false)
    report(++result.files)
    if (isText) return undefined
    result.binaryFiles++
    return 'it is a binary file'
  }

  return { searchName, searchStdin, search }
}

// Names in a folder may not be UTF-8: within this file, each character of a path is a byte.
const toBytes = (text: string) => Buffer.from(text).toString('latin1')
const toText = (path: string) => Buffer.from(path, 'latin1').toString()
const withoutKeys = (text: string) => text.replace(new RegExp(KEY_SHAPE, 'g'), '_[key]')

function searchFile(finder: KeyFinder, path: string, buffer: Buffer): boolean {
  const file = openSync(Buffer.from(path, 'latin1'), 'r')
  try {
    for (;;) {
      let length = 0
      for (let count = 1; count > 0 && length < buffer.length; length += count) {
        count = readSync(file, buffer, length, buffer.length - length, null)
      }
      const isLast = length < buffer.length
      if (!finder.add(buffer.subarray(0, length), isLast)) return false
      if (isLast) return true
    }
  } finally {
    closeSync(file)
  }
}
