/** Finds keys in bytes, by their format and checksum. */
import { extractKeyId, isWellFormedKey, KEY_PREFIX_PATTERN } from '../../core/keys/format.ts'

export interface FoundKey {
  /** The secret, which is never printed. */
  readonly text: string
  readonly id: string
  /** From 1; columns count code points. */
  readonly line: number
  readonly column: number
  /** Of the output of `git log -p`. */
  readonly commit: string | undefined
  readonly file: string | undefined
}

const markers = [Buffer.from('_live_'), Buffer.from('_test_')]
/** From the marker to the end of the key. */
const tailLength = 57
const maxPrefixLength = 10
/** Git decides by as many bytes whether a file is binary. */
const headLength = 8_000
const maxHeaderLength = 4_096

/**
 * Searches a text that arrives in chunks, with bounded memory.
 *
 * @param prefix Of the keys, by default any.
 * @param places Which to track: `none`, which is fastest, `lines`, or with them the `commits` of `git log -p`.
 */
export function createKeyFinder(prefix: string | undefined, places: 'none' | 'lines' | 'commits') {
  const isHistory = places === 'commits'
  const keys: FoundKey[] = []
  let decoder: TextDecoder | undefined
  let isFirst = true
  // What may belong to a key that goes on. The headers of Git begin after a line feed.
  let rest = Buffer.from(isHistory ? '\n' : '')
  /** Of `rest`, what has been searched for markers. */
  let searched = 0
  let line = isHistory ? 0 : 1
  let column = 1
  let commit: string | undefined
  let file: string | undefined

  function advance(bytes: Buffer): void {
    if (places === 'none') return
    for (let index = 0; index < bytes.length; index++) {
      const byte = bytes[index]!
      if (byte === 10) {
        line++
        column = 1
      } else if ((byte & 0xc0) !== 0x80) column++
    }
    if (!isHistory) return
    commit = lastHeader(bytes, '\ncommit ')?.slice(0, 40) ?? commit
    file = lastHeader(bytes, '\ndiff --git ')?.replace(/^.* "?b\//, '') ?? file
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
      const added = decoder !== undefined
        ? Buffer.from(decoder.decode(chunk, { stream: !isLast }))
        // A history has files of all encodings. Without NUL, ASCII in UTF-16 is ASCII.
        : isHistory && chunk.includes(0)
        ? Buffer.from(chunk.filter((byte) => byte !== 0))
        : chunk
      const bytes = rest.length === 0 ? added : Buffer.concat([rest, added])
      const end = isLast ? bytes.length : Math.max(searched, bytes.length - tailLength + 1)
      let at = 0
      for (const position of positionsOf(bytes, searched, end)) {
        const text = keyAt(bytes, position, prefix)
        if (text === undefined) continue
        const start = position + tailLength - text.length
        advance(bytes.subarray(at, start))
        at = start
        keys.push({ text, id: extractKeyId(text, text.slice(0, -tailLength))!, line, column, commit, file })
      }
      if (isLast) return true
      // Headers stay whole.
      const lineStart = isHistory ? bytes.lastIndexOf('\n', end) : -1
      const isNear = lineStart > end - maxHeaderLength
      const kept = Math.max(at, Math.min(end - maxPrefixLength, isNear ? lineStart : end))
      advance(bytes.subarray(at, kept))
      // A copy: the reader uses its buffer again.
      rest = Buffer.from(bytes.subarray(kept))
      searched = end - kept
      return true
    },
  }
}

export type KeyFinder = ReturnType<typeof createKeyFinder>

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
