/** The report of `verify --junit`, in the XML format of JUnit, as CI systems read it. */
import { writeFile } from 'node:fs/promises'
import { CliError, type ExitCode } from '../errors.ts'
import { describeFileError } from '../files.ts'
import { printable, redact } from '../output/text.ts'
import type { CheckResult } from './check.ts'

interface TestCase {
  readonly name: string
  readonly ms: number
  /** `error` for what could not be tested. */
  readonly problem?: readonly [element: 'failure' | 'error' | 'skipped', message: string] | undefined
}

/** @throws {CliError} `file_not_written` */
export async function writeJunit(
  file: string,
  result: CheckResult,
  modules: readonly string[],
): Promise<void> {
  await writeFile(file, formatJunit(result, modules)).catch((error) => {
    throw new CliError(1, 'file_not_written', `${file} can't be written: ${describeFileError(error)}.`)
  })
}

function formatJunit(result: CheckResult, modules: readonly string[]): string {
  const { error, smoke = [], notReady, ms } = result
  const failed = (exitCode: ExitCode) => exitCode === 1 ? 'failure' : 'error'
  const smokeMs = smoke.reduce((sum, each) => sum + (each.ms ?? 0), 0)
  const cases: readonly TestCase[] = [
    {
      name: 'verify-key',
      ms: ms - smokeMs,
      problem: error && [failed(error.exitCode), [error.message, ...error.lines].join('\n')],
    },
    ...(error ? [] : modules).map((module) => {
      const reasons = notReady.filter((each) => each.module === module).map(({ reason }) => reason)
      const problem = reasons.length === 0 ? undefined : ['failure', reasons.join('\n')] as const
      return { name: `module ${module}`, ms: 0, problem }
    }),
    ...smoke.map(({ method, path, ms, verdict, reasons }) => {
      const element = verdict === 'failed' ? 'failure' : verdict === 'unreachable' ? 'error' : 'skipped'
      const problem = verdict === 'ok' ? undefined : [element, reasons.join('\n')] as const
      return { name: `${method} ${path}`, ms: ms ?? 0, problem }
    }),
  ]
  const count = (element: string) => cases.filter(({ problem }) => problem?.[0] === element).length
  const totals = `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" ` +
    `skipped="${count('skipped')}" time="${seconds(ms)}"`
  const timestamp = new Date().toISOString().slice(0, 19)
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${totals}>\n` +
    `<testsuite name="partner-api verify" ${totals} timestamp="${timestamp}">\n${
      cases.map(formatCase).join('')
    }</testsuite>\n</testsuites>\n`
}

function formatCase({ name, ms, problem }: TestCase): string {
  const attributes = `classname="partner-api.verify" name="${escape(name)}" time="${seconds(ms)}"`
  if (problem === undefined) return `<testcase ${attributes}/>\n`
  const [element, message] = problem
  const [first = ''] = message.split('\n', 1)
  const body = element === 'skipped' ? '/>' : `>${escape(message)}</${element}>`
  return `<testcase ${attributes}><${element} message="${escape(first)}"${body}</testcase>\n`
}

function seconds(ms: number): string {
  return (Math.max(0, ms) / 1_000).toFixed(3)
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Control characters, which XML does not allow, are escaped as on a terminal. */
function escape(text: string): string {
  return redact(text).split('\n').map(printable).join('\n')
    .replace(/[\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (character) => entities[character]!)
}
