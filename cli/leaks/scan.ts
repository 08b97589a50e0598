/** Reads files and folders, and searches them for keys. */
import { closeSync, openSync, readSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describeFileError } from '../files.ts'
import type { Io } from '../output/print.ts'
import { createKeyFinder, type FoundKey, type KeyFinder } from './key-finder.ts'

/** A key and its file. */
export interface Leak extends FoundKey {
  /** `-` for standard input. */
  readonly path: string
}

/** What a scan has found. */
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
  const excluded = new Set(['.git', ...exclude])
  // Small files are read synchronously: that takes a third of the time of asynchronous reads by a pool.
  const buffer = Buffer.allocUnsafeSlow(1 << 18)

  /** @param isSeekable Whether it can be read twice. */
  async function search(path: string, isSeekable: boolean): Promise<void> {
    let finder = createKeyFinder(prefix, isSeekable ? 'none' : 'commits')
    const isText = path === '-' ? await searchStream(finder, stdin) : searchFile(finder, path, buffer)
    if (isSeekable && finder.keys.length > 0) {
      finder = createKeyFinder(prefix, 'lines')
      searchFile(finder, path, buffer)
    }
    if (!isText) result.binaryFiles++
    for (const key of finder.keys) result.leaks.push({ ...key, path })
    report(++result.files)
  }

  async function tryPath(path: string, read: () => Promise<void>): Promise<void> {
    await read().catch((error) => result.unreadable.push({ path, reason: describeFileError(error) }))
  }

  async function searchFolder(root: string): Promise<void> {
    const folders = [root]
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const path = folder
      await tryPath(path, async () => {
        for (const entry of await readdir(path, { withFileTypes: true })) {
          if (excluded.has(entry.name)) continue
          const inner = join(path, entry.name)
          if (entry.isDirectory()) folders.push(inner)
          // Neither links, which may be circular, nor devices and sockets.
          else if (entry.isFile()) await tryPath(inner, () => search(inner, true))
        }
      })
    }
  }

  for (const path of paths) {
    await tryPath(path, async () => {
      const status = path === '-' ? undefined : await stat(path)
      return status?.isDirectory() ? searchFolder(path) : search(path, status?.isFile() ?? false)
    })
  }
  result.leaks.sort((a, b) =>
    a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line || a.column - b.column
  )
  return result
}

function searchFile(finder: KeyFinder, path: string, buffer: Buffer): boolean {
  const file = openSync(path, 'r')
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

async function searchStream(finder: KeyFinder, stream: AsyncIterable<Buffer>): Promise<boolean> {
  for await (const chunk of stream) if (!finder.add(chunk, false)) return false
  return finder.add(Buffer.alloc(0), true)
}
