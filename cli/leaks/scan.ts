/** Finds keys in files, by their format and checksum. */
import { closeSync, openSync, readSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { containsKey, KEY_SHAPE } from '../../core/http/redact.ts'
import { extractKeyId, isWellFormedKey, KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'
import { describeFileError } from '../files.ts'
import type { Io } from '../output/print.ts'

const markers = [Buffer.from('_live_'), Buffer.from('_test_')]
/** From the marker to the end of the key. */
const tailLength = 57
const maxPrefixLength = 10
/** Git decides by as many bytes whether a file is binary. */
const headLength = 8_000
const maxHeaderLength = 4_096

/** A key and its file. Keys are removed from `path` and `file`. */
export interface Leak {
  readonly text: string
  readonly id: string
  /** `-` for standard input. */
  readonly path: string
  /** Whether the key is in the name of the file or folder, and not in a line. */
  readonly isName: boolean
  /** From 1; columns count code points. */
  readonly line: number
  readonly column: number
  /** Of the output of `git log -p`. */
  readonly commit: string | undefined
  readonly file: string | undefined
}

export interface Scan {
  readonly leaks: Leak[]
  readonly unreadable: { readonly path: string; readonly reason: string }[]
  files: number
  binaryFiles: number
}

/** Scans files, folders without `.git` and symbolic links, and for `-` standard input. @param prefix By default any. */
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

/** Which places to track: `none`, which is fastest, `lines`, or with them the `commits` of `git log -p`. */
type Places = 'none' | 'lines' | 'commits'

/** Searches a text that arrives in chunks, with bounded memory. @param prefix Of the keys, by default any. */
function createKeyFinder(prefix: string | undefined, places: Places) {
  const isHistory = places === 'commits'
  const keys: Omit<Leak, 'path' | 'isName'>[] = []
  const position = createPosition(places)
  let decoder: TextDecoder | undefined
  let isFirst = true
  // The start of a key that the next chunk may complete. The headers of Git begin after a line feed.
  let rest = Buffer.from(isHistory ? '\n' : '')
  /** Of `rest`, what has been searched for markers. */
  let searched = 0

  function decode(chunk: Buffer, isLast: boolean): Buffer {
    if (decoder !== undefined) return Buffer.from(decoder.decode(chunk, { stream: !isLast }))
    // A history has files of all encodings. Without NUL, ASCII in UTF-16 is ASCII.
    return isHistory && chunk.includes(0) ? Buffer.from(chunk.filter((byte) => byte !== 0)) : chunk
  }

  return {
    keys,
    /** @returns `false` for a binary file: it has NUL in its head, and no byte-order mark of UTF-16. */
    add(chunk: Buffer, isLast: boolean): boolean {
      if (isFirst) {
        const encoding = utf16Encoding(chunk)
        if (encoding !== undefined) decoder = new TextDecoder(encoding)
        // The history of a repository may begin with a file that has NUL.
        else if (!isHistory && chunk.subarray(0, headLength).includes(0)) return false
      }
      isFirst = false
      const added = decode(chunk, isLast)
      const bytes = rest.length === 0 ? added : Buffer.concat([rest, added])
      const end = isLast ? bytes.length : Math.max(searched, bytes.length - tailLength + 1)
      let at = 0
      for (const marker of positionsOf(bytes, searched, end)) {
        const text = keyAt(bytes, marker, prefix)
        if (text === undefined) continue
        const start = marker + tailLength - text.length
        position.advance(bytes.subarray(at, start))
        at = start
        keys.push({ text, id: extractKeyId(text, text.slice(0, -tailLength))!, ...position.place })
      }
      if (isLast) return true
      // Headers stay whole.
      const lineStart = isHistory ? bytes.lastIndexOf('\n', end) : -1
      const isNear = lineStart > end - maxHeaderLength
      const kept = Math.max(at, Math.min(end - maxPrefixLength, isNear ? lineStart : end))
      position.advance(bytes.subarray(at, kept))
      // A copy: the reader uses its buffer again.
      rest = Buffer.from(bytes.subarray(kept))
      searched = end - kept
      return true
    },
  }
}

type KeyFinder = ReturnType<typeof createKeyFinder>

function createPosition(places: Places) {
  const place = {
    line: places === 'commits' ? 0 : 1,
    column: 1,
    commit: undefined as string | undefined,
    file: undefined as string | undefined,
  }
  return {
    place,
    advance(bytes: Buffer): void {
      if (places === 'none') return
      for (let index = 0; index < bytes.length; index++) {
        const byte = bytes[index]!
        if (byte === 10) {
          place.line++
          place.column = 1
        } else if ((byte & 0xc0) !== 0x80) place.column++
      }
      if (places === 'lines') return
      place.commit = lastHeader(bytes, '\ncommit ')?.slice(0, 40) ?? place.commit
      place.file = lastHeader(bytes, '\ndiff --git ')?.replace(/^.* "?b\//, '') ?? place.file
    },
  }
}

function utf16Encoding([first, second]: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined
}

/** Where markers that the separator of a key follows are, in order. */
function positionsOf(bytes: Buffer, start: number, end: number): number[] {
  const positions: number[] = []
  for (const marker of markers) {
    for (let at = bytes.indexOf(marker, start); at !== -1 && at < end; at = bytes.indexOf(marker, at + 1)) {
      if (bytes[at + marker.length + 12] === 0x5f) positions.push(at)
    }
  }
  return positions.sort((a, b) => a - b)
}

/** The key around a marker. Letters before its prefix may belong to the text, as in `\nspk_live_…`. */
function keyAt(bytes: Buffer, position: number, prefix: string | undefined): string | undefined {
  const tail = bytes.toString('latin1', position, position + tailLength)
  for (let length = 2; length <= Math.min(maxPrefixLength, position); length++) {
    const name = bytes.toString('latin1', position - length, position)
    if (!KEY_PREFIX_PATTERN.test(name) || prefix !== undefined && name !== prefix) continue
    if (isWellFormedKey(name + tail, name)) return name + tail
  }
  return undefined
}

/** The rest of the last line that begins with a header. */
function lastHeader(bytes: Buffer, header: string): string | undefined {
  const at = bytes.lastIndexOf(header)
  if (at === -1) return undefined
  const start = at + header.length
  const end = bytes.indexOf(10, start)
  return bytes.toString('utf8', start, Math.min(end === -1 ? bytes.length : end, start + maxHeaderLength))
}
