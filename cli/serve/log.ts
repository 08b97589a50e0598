import { writeSync } from 'node:fs'
import type { LogEvent } from '../../core/log.ts'

export interface ServeEvent {
  readonly time: string
  readonly level: 'info' | 'warn'
  readonly event: 'store_opened' | 'port_blocked' | 'stopped'
  /** Location of the store, without any password. */
  readonly store?: string
  readonly created?: boolean
  /** A problem and what solves it. */
  readonly warning?: string
}

/** Writes bytes from `start` on. @returns Number of bytes written. @throws when it would block. */
type Write = (bytes: Uint8Array, start: number) => number

/** Events of one turn of the event loop are written together, up to this length. */
const maxBufferedLength = 65_536
const retryMs = 1_000
const lineFeed = 10

/**
 * Writes events as JSON lines on standard error. It never blocks and uses bounded memory: lines that can't be
 * written (a full pipe or disk) are dropped, and a later line reports their number:
 * `{"event":"log_dropped","count":…}`.
 */
export function createLog(
  level: 'off' | 'errors' | 'all',
  // The stream process.stderr would buffer without a bound for a slow reader.
  writeBytes: Write = (bytes, start) => writeSync(2, bytes, start),
) {
  let buffer = ''
  /** The rest of a line that was written in part. */
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
    const lost = bytes.subarray(end).filter((byte) => byte === lineFeed).length
    dropped = (isReported ? 0 : dropped) + lost - (isReported || notice === '' ? 0 : 1)
    if (partialLine.length + dropped === 0) return
    retryTimer ??= setTimeout(() => {
      retryTimer = undefined
      flush()
    }, retryMs).unref()
  }

  function write(event: LogEvent | ServeEvent): void {
    if (buffer === '') setImmediate(flush)
    buffer += `${JSON.stringify(event)}\n`
    if (buffer.length > maxBufferedLength) flush()
  }

  return {
    write,
    /** Writes an event of the server itself, unless the level is `off`. */
    event(event: ServeEvent['event'], members: Partial<ServeEvent> = {}): void {
      if (level !== 'off') write({ time: new Date().toISOString(), level: 'info', event, ...members })
    },
    /** Writes buffered events, before the process ends. */
    flush,
  }
}

function droppedLine(count: number): string {
  const event = { time: new Date().toISOString(), level: 'warn', event: 'log_dropped', count }
  return `${JSON.stringify(event)}\n`
}

function writeAll(bytes: Uint8Array, writeBytes: Write): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeBytes(bytes, written)
  } catch {
    // A closed (EPIPE) or full (EAGAIN, ENOSPC) log must not stop the service.
  }
  return written
}

/** The end of the line in which a write stopped. */
function endOfLine(bytes: Uint8Array, written: number): number {
  return written === 0 || bytes[written - 1] === lineFeed ? written : bytes.indexOf(lineFeed, written) + 1
}
