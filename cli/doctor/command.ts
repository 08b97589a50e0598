import type { CliCommand, Invocation } from '../command.ts'
import { type Check, CHECKS, type Severity } from './check.ts'
import { checkAccess, checkStore } from './store.ts'
import { type ExitCode, toCliError } from '../errors.ts'
import type { Output } from '../output/print.ts'
import { pluralize, printable, redactAll } from '../output/text.ts'
import { describeStore } from '../store/open.ts'
import { parseDurableUrl } from '../store/url.ts'
import { readWebhookKey, webhookKeyOption } from '../webhooks/encryption-key.ts'

export function define(doctor: CliCommand): void {
  doctor
    .addOption(webhookKeyOption())
    .act(diagnose)
    .details(`
Changes nothing. Each issue has the command or the setting that fixes it. Exits 1 if there is an issue, and 3 if the
store cannot be reached. With the key of webhooks, checks that it opens their secrets. See keys list for keys that
expire or are unused, and verify for a running service.`)
    .examples(
      'partner-api doctor',
      'partner-api doctor --webhook-key-file webhook.key',
      `partner-api doctor --json | jq -r '.data.checks[] | select(.severity == "error") | .message'`,
    )
}

/** The result of a check under `--json`. */
interface Result {
  readonly check: keyof typeof CHECKS
  readonly severity: Severity | null
  readonly message: string | null
  readonly command: string | null
}

async function diagnose(
  invocation: Invocation,
  { webhookKeyFile }: { readonly webhookKeyFile?: string },
): Promise<ExitCode> {
  const { storeUrl, output } = invocation
  parseDurableUrl(storeUrl, 'doctor checks a store that lasts: sqlite:FILE or postgres://….')
  await describeStore(invocation)
  const webhookKey = await readWebhookKey(webhookKeyFile, invocation).catch(() => undefined)
  const results: Result[] = []
  const check = createCheck(results, output)
  const error = await output.progress(async (report) => {
    checkAccess(check, 'key-files', webhookKeyFile === undefined ? [] : [webhookKeyFile])
    return await checkStore(check, invocation, webhookKey, report).then(() => undefined, toCliError)
  })
  const remedy = error?.remedy && ['partner-api', error.remedy.command, ...error.remedy.args].join(' ')
  check('store', error && { message: error.message, command: remedy })
  await printResults(output, results)
  if (error?.exitCode === 3) return 3
  return results.some(({ severity }) => severity !== null) ? 1 : 0
}

function createCheck(results: Result[], output: Output): Check {
  return (name, ...issues) => {
    const found = issues.filter((issue) => !!issue)
    if (found.length === 0) results.push({ check: name, severity: null, message: null, command: null })
    for (const { command, ...issue } of found) {
      const fix = command?.replace(/^partner-api (.*)/, (_, words) => output.command(words)) ?? null
      results.push({ check: name, severity: CHECKS[name], ...issue, command: fix })
    }
  }
}

async function printResults(output: Output, results: readonly Result[]): Promise<void> {
  const checks = redactAll(results)
  const rows = checks.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity))
  await output.print({ data: { checks }, text: rows.map(formatResult).join('') })
  const count = (name: Severity) =>
    pluralize(results.filter(({ severity }) => severity === name).length, name)
  output.note(`${pluralize(results.length, 'check')}: ${count('error')}, ${count('warning')}.`)
}

/** The order of results: the worst is at the bottom of a terminal. */
const order: readonly (Severity | null)[] = [null, 'warning', 'error']

function formatResult({ check, severity, message, command }: Result): string {
  const title = `${(severity ?? 'ok').padEnd(8)} ${check}`
  if (message === null) return `${title}\n`
  const line = `${title}: ${printable(message)}\n`
  return command === null ? line : `${line}         To fix it: ${printable(command)}\n`
}
