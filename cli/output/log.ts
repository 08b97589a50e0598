import { writeSync } from 'node:fs'
import type { LogEvent } from '../../core/log.ts'

/** What `serve` has to say besides the service. */
export interface ServeEvent {
  /** RFC 3339, UTC. */
  readonly time: string
  readonly level: 'info' | 'warn'
  readonly event: 'store_opened' | 'stopped'
  /** The file, or the place of the database: without a password. */
  readonly store?: string
  /** Whether the store is new. */
  readonly created?: boolean
  /** What weakens its security, and the command that mends it. */
  readonly warning?: string
}

/** A log on standard error: JSON lines, those of one turn of the event loop in one write. */
export interface Log {
  write(event: LogEvent | ServeEvent): void
  /** Writes what is held back, before the process ends. */
  flush(): void
}

/** Writes bytes from `start` on. @returns How many it wrote. @throws when it can write none now. */
type Write = (bytes: Uint8Array, start: number) => number

/** More than this in one turn of the event loop is written at once. */
const maxBufferedLength = 65_536
/** How soon it is tried again after lines were lost. */
const retryMs = 1_000
const lineFeed = 10

/**
 * A log that never waits and never grows: lines that can't be written (a pipe that nobody reads, a full disk) are
 * lost, and once writing works again a line says how many: `{"event":"log_dropped","count":…}`.
 */
export function createLog(
  // Not through process.stderr: a stream whose reader is slow would keep the log in memory without a bound.
  writeBytes: Write = (bytes, start) => writeSync(2, bytes, start),
): Log {
  let buffer = ''
  /** The end of a line that was written in part. */
  let partialLine: Uint8Array = new Uint8Array()
  let dropped = 0
  let retryTimer: NodeJS.Timeout | undefined

  function flush(): void {
    const notice = dropped === 0 ? '' : droppedLine(dropped)
    const bytes = Buffer.concat([partialLine, Buffer.from(notice + buffer)])
    const noticeAt = partialLine.length
    buffer = ''
    const written = writeAll(bytes, writeBytes)
    const end = written < noticeAt ? noticeAt : endOfLine(bytes, written)
    const isReported = end > noticeAt
    partialLine = bytes.subarray(written, end)
    dropped = (isReported ? 0 : dropped) + countLines(bytes, end) - (isReported || notice === '' ? 0 : 1)
    if (partialLine.length + dropped > 0) retryTimer ??= setTimeout(retryFlush, retryMs).unref()
  }

  function retryFlush(): void {
    retryTimer = undefined
    flush()
  }

  return {
    write(event) {
      if (buffer === '') setImmediate(flush)
      buffer += `${JSON.stringify(event)}\n`
      if (buffer.length > maxBufferedLength) flush()
    },
    flush,
  }
}

function droppedLine(count: number): string {
  const event = { time: new Date().toISOString(), level: 'warn', event: 'log_dropped', count }
  return `${JSON.stringify(event)}\n`
}

/** @returns How many bytes were written before no more could be. */
function writeAll(bytes: Uint8Array, writeBytes: Write): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeBytes(bytes, written)
  } catch {
    // A log that nobody reads (EPIPE) or that is full (EAGAIN, ENOSPC) is no reason to stop serving.
  }
  return written
}

/** Where the line that a write stopped in ends: there, when it stopped between two lines. */
function endOfLine(bytes: Uint8Array, written: number): number {
  return written === 0 || bytes[written - 1] === lineFeed ? written : bytes.indexOf(lineFeed, written) + 1
}

function countLines(bytes: Uint8Array, start: number): number {
  let count = 0
  for (let at = bytes.indexOf(lineFeed, start); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count++
  return count
}
