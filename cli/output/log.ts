import { writeSync } from 'node:fs'
import type { LogEvent } from '../../core/log.ts'

/** A log on standard error: JSON lines, those of one turn of the event loop in one write. */
export interface Log {
  write(event: LogEvent): void
  /** Writes what is held back, before the process ends. */
  flush(): void
}

/** More than this in one turn of the event loop is written at once. */
const maxHeld = 65_536

export function createLog(): Log {
  let held = ''

  function flush(): void {
    const text = held
    held = ''
    // Not through process.stderr: a stream whose reader is slow would keep the log in memory without a bound.
    if (text !== '') writeAll(Buffer.from(text))
  }

  return {
    write(event) {
      if (held === '') setImmediate(flush)
      held += `${JSON.stringify(event)}\n`
      if (held.length > maxHeld) flush()
    },
    flush,
  }
}

function writeAll(bytes: Buffer): void {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(2, bytes, written)
  } catch {
    // A log that nobody reads (EPIPE) or that is full (EAGAIN, ENOSPC) is no reason to stop serving.
  }
}
