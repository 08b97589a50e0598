import { createServiceNames } from '../../core/http/headers.ts'
import type { CliCommand, Invocation } from '../command.ts'
import type { Store } from '../../core/ports/store.ts'
import { type Check, CHECKS, type Severity } from './check.ts'
import { checkAccess, checkServeOptions, checkStore } from './store.ts'
import { type ExitCode, toCliError } from '../errors.ts'
import { serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import { pluralize, printable, redactAll } from '../output/text.ts'
import type { ServiceOptions } from '../serve/service-options.ts'
import { describeStore } from '../store/open.ts'
import { parseDurableUrl } from '../store/url.ts'
import { parseDeploymentUrl, parseKeyId, readCredential } from '../verify/credential.ts'
import { readWebhookKey } from '../webhooks/encryption-key.ts'

interface DoctorOptions {
  readonly url?: readonly string[]
  readonly keyFile?: readonly string[]
  readonly serviceName: string
}

export function define(doctor: CliCommand): void {
  doctor
    .option('--url <base...>', 'Also check the services at these addresses, without /service')
    .option(
      '--key-file <file...>',
      'Also check who can read these files; --url sends the key in the first one',
    )
    .option('--service-name <name>', 'Service name of the deployments', serviceNameOption, 'service')
    .act((invocation, options: DoctorOptions) => diagnose(doctor.parent as CliCommand, invocation, options))
    .details(`
Changes nothing. Each issue has the command or the setting that fixes it. Exits 1 if there is an error or a warning,
and 3 if the store or a service cannot be reached; the other checks still run.`)
    .examples(
      'partner-api doctor',
      'partner-api doctor --url https://api.example --key-file monitoring.key',
      `partner-api doctor --json | jq -r '.data.checks[] | select(.severity == "error") | .message'`,
    )
}

/** The result of a check under `--json`. */
interface Result {
  readonly check: keyof typeof CHECKS
  readonly severity: Severity | null
  readonly message: string | null
  readonly command: string | null
  readonly url?: string
}

async function diagnose(
  program: CliCommand,
  invocation: Invocation,
  { url: urls = [], keyFile: keyFiles = [], serviceName }: DoctorOptions,
): Promise<ExitCode> {
  const { storeUrl, io, io: { env }, output } = invocation
  parseDurableUrl(storeUrl, 'doctor checks a store that lasts: sqlite:FILE or postgres://….')
  await describeStore(invocation)
  const bases = urls.map(parseDeploymentUrl)
  const hasKey = bases.length > 0 && (keyFiles.length > 0 || env['PARTNER_API_KEY'])
  const key = hasKey ? await readCredential(keyFiles[0], io) : ''
  const verify = await settingsOf<{ readonly keyFile?: string }>(program, 'verify')
  const serve = await settingsOf<ServiceOptions & { readonly webhookKeyFile?: string }>(program, 'serve')
  const { webhookKeyFile, trustedProxies = 0 } = serve
  const webhookKey = await readWebhookKey(webhookKeyFile, invocation).catch(() => undefined)
  const secretFiles = [...keyFiles, verify.keyFile ?? '', webhookKeyFile ?? ''].filter(Boolean)
  const names = createServiceNames(serviceName)
  const results: Result[] = []
  let isUnreachable = false
  let partner: string | undefined

  /** Runs checks. When one throws, that is an error too. */
  async function run(name: Result['check'], work: (check: Check) => Promise<void>, base?: URL) {
    const check = createCheck(results, output, base)
    const error = await work(check).then(() => undefined, toCliError)
    isUnreachable ||= error?.exitCode === 3
    const remedy = error?.remedy && ['partner-api', error.remedy.command, ...error.remedy.args].join(' ')
    check(name, error && { message: error.message, command: remedy })
  }

  await output.progress(async (report) => {
    await run('store', async (check) => {
      checkAccess(check, 'key-files', secretFiles)
      checkServeOptions(check, serve)
      const findPartner = async (store: Store) => {
        partner = (await store.findKey(parseKeyId(key) ?? ''))?.partner.slug
      }
      await checkStore(check, invocation, webhookKey, findPartner, report)
    })
    for (const base of bases) {
      const { checkDeployment } = await import('./deployment.ts')
      const credential = partner === undefined ? undefined : { key, partner }
      await run(
        'deployment',
        (check) => checkDeployment(check, base, names, env, trustedProxies, credential),
        base,
      )
    }
  })
  await printResults(output, results)
  if (bases.length > 0 && partner === undefined) {
    output.note(
      'Limits and staleness of a service are checked with a key of the store: --key-file or PARTNER_API_KEY.',
    )
  }
  if (isUnreachable) return 3
  return results.some(({ severity }) => severity === 'error' || severity === 'warning') ? 1 : 0
}

function createCheck(results: Result[], output: Output, base: URL | undefined): Check {
  const about = base && { url: base.href }
  return (name, ...issues) => {
    const found = issues.filter((issue) => !!issue)
    if (found.length === 0) {
      results.push({ check: name, severity: null, message: null, command: null, ...about })
    }
    for (const { command, ...issue } of found) {
      const fix = command?.replace(/^partner-api (.*)/, (_, words) => output.command(words)) ?? null
      results.push({ check: name, severity: CHECKS[name], ...issue, command: fix, ...about })
    }
  }
}

async function printResults(output: Output, results: readonly Result[]): Promise<void> {
  const checks = redactAll(results)
  const rows = checks.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity))
  await output.result({ checks }, rows.map(formatResult).join(''))
  const count = (name: Severity) =>
    pluralize(results.filter(({ severity }) => severity === name).length, name)
  output.note(`${pluralize(results.length, 'check')}: ${count('error')}, ${count('warning')}.`)
}

/** The options of a command in the environment and the configuration file. */
async function settingsOf<Options extends object>(program: CliCommand, name: string): Promise<Options> {
  const { command } = await program.find([name])
  command.parseOptions([])
  return command.opts<Options>()
}

/** On a terminal, the worst is at the bottom. */
const order: readonly (Severity | null)[] = [null, 'info', 'warning', 'error']

function formatResult({ check, severity, message, command, url }: Result): string {
  const title = `${(severity ?? 'ok').padEnd(8)} ${check}${url ? ` at ${url}` : ''}`
  if (message === null) return `${title}\n`
  const line = `${title}: ${printable(message)}\n`
  return command === null ? line : `${line}         To fix it: ${printable(command)}\n`
}
