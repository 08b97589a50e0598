import process from 'node:process'

const intervalMs = 100

/** A line on the terminal that says how far a long command is, ten times a second at most. */
export interface Progress {
  report(text: string): void
  /** Takes the line away. */
  end(): void
}

/** Shows nothing unless standard error is a terminal: in a file or a log, progress is noise. */
export function createProgress(): Progress {
  if (!process.stderr.isTTY) return { report() {}, end() {} }
  let shownAt = -Infinity
  return {
    report(text) {
      const now = performance.now()
      if (now - shownAt < intervalMs) return
      shownAt = now
      process.stderr.write(`\r\u001b[K${text}`)
    },
    end() {
      if (shownAt !== -Infinity) process.stderr.write('\r\u001b[K')
    },
  }
}
