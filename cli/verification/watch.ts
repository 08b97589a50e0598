/** `verify --watch`. */
import { once } from 'node:events'
import process from 'node:process'
import { delay } from '../../core/lib/promise.ts'
import type { ExitCode } from '../errors.ts'
import type { Output } from '../output/print.ts'
import { excerpt, joinList, pluralize, printable } from '../output/text.ts'
import type { CheckResult } from './check.ts'

const maxSentenceLength = 1_000
/** Times in sentences, which differ between checks. */
const volatile = /\d+ seconds?|[\d-]+ \d\d:\d\d(?::\d\d)?/g
const signals = ['SIGINT', 'SIGTERM'] as const

/**
 * Repeats a check until SIGINT or SIGTERM, and prints each result that differs from the one before it.
 *
 * @returns The exit code of the last result.
 */
export async function watch(
  output: Output,
  intervalMs: number,
  check: (signal: AbortSignal) => Promise<CheckResult>,
): Promise<ExitCode> {
  const interrupt = new AbortController()
  const interrupted = once(interrupt.signal, 'abort').then(() => undefined)
  const stop = () => interrupt.abort()
  let shown = ''
  let exitCode: ExitCode = 0
  try {
    await output.progress(async (report) => {
      for (let count = 1;; count++) {
        const result = await Promise.race([check(interrupt.signal), interrupted])
        if (result === undefined) return
        exitCode = result.exitCode
        const sentence = describeResult(result)
        const time = new Date().toISOString()
        const essence = sentence.replace(volatile, '')
        if (essence !== shown) {
          // Removes the progress, which may be on the same terminal.
          report('')
          await output.result(
            { checked_at: time, exit_code: exitCode, result: sentence },
            `${time}  ${sentence}\n`,
          )
          shown = essence
        }
        report(`${pluralize(count, 'check')}, the last at ${time.slice(11, 19)} UTC. Ctrl-C ends.`)
        // Before there is a result to exit with, signals have their usual effect.
        if (count === 1) { for (const signal of signals) process.on(signal, stop) }
        if (!interrupt.signal.aborted) await delay(intervalMs, interrupt.signal).catch(() => {})
        if (interrupt.signal.aborted) return
      }
    })
  } finally {
    for (const signal of signals) process.removeListener(signal, stop)
  }
  return exitCode
}

function describeResult({ error, notReady, smoke = [] }: CheckResult): string {
  const problems = error === undefined
    ? [
      ...notReady.map(({ reason }) => `not ready: ${reason}`),
      ...smoke.filter(({ verdict }) => verdict === 'failed' || verdict === 'unreachable')
        .map(({ method, path, reasons }) => `${method} ${path}: ${joinList(reasons)}`),
    ]
    : [error.message, ...error.lines.filter((line) => !line.startsWith('Request ID'))]
  return printable(excerpt(problems.join(' ') || 'The key is valid.', maxSentenceLength))
}
