/** `verify --watch`. */
import type { ExitCode } from '../errors.ts'
import type { Output } from '../output/print.ts'
import { excerpt, joinList, pluralize, printable } from '../output/text.ts'
import { repeat } from '../repeat.ts'
import type { CheckResult } from './check.ts'

const maxSentenceLength = 1_000
/** Times in sentences, which differ between checks. */
const volatile = /\d+ seconds?|[\d-]+ \d\d:\d\d(?::\d\d)?/g

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
  let shown = ''
  let exitCode: ExitCode = 0
  let count = 0
  output.isJsonLines = true
  await output.progress(async (report) => {
    for await (const result of repeat(intervalMs, check)) {
      count++
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
    }
  })
  return exitCode
}

function describeResult({ error, notReady, smoke = [] }: CheckResult): string {
  const problems = error === undefined
    ? [
      ...notReady.map((reason) => `not ready: ${reason}`),
      ...smoke.filter(({ verdict }) => verdict === 'failed' || verdict === 'unreachable')
        .map(({ method, path, reasons }) => `${method} ${path}: ${joinList(reasons)}`),
    ]
    : [error.message, ...error.lines.filter((line) => !line.startsWith('Request ID'))]
  return printable(excerpt(problems.join(' ') || 'The key is valid.', maxSentenceLength))
}
