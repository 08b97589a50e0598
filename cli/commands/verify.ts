import process from 'node:process'
import { type Command, Option } from 'commander'
import { createServiceNames, type ServiceNames } from '../../core/http/headers.ts'
import { MODULE_NAMES } from '../../core/policy/modules.ts'
import { action } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import type { Invocation } from '../invocation.ts'
import { serviceNameOption } from '../options.ts'
import { printNote, printResult, withProgress } from '../output/print.ts'
import {
  excerptAll,
  formatDetails,
  formatTable,
  joinList,
  pluralize,
  printable,
  redactAll,
} from '../output/text.ts'
import { isLoopback, parseDeploymentUrl, parseKeyId, readCredential } from '../verification/credential.ts'
import type { Deployment } from '../verification/deployment.ts'
import type { SmokeResult, Verification } from '../verification/response.ts'

interface VerifyOptions {
  readonly url: string
  readonly partner: string
  readonly module?: readonly string[]
  readonly keyFile?: string
  readonly caFile?: string
  readonly serviceName: string
  readonly force?: true
  readonly smoke?: true
  readonly withSignup?: boolean
}

/** `verify`. */
export function define(verify: Command): void {
  verify
    .requiredOption('--url <base>', 'Where the deployment is: what stands before /service/…')
    .requiredOption('--partner <slug>', 'The partner whose key it is')
    .addOption(
      new Option('--module <module...>', 'Modules that have to be ready, or it exits 1').choices(
        MODULE_NAMES,
      ),
    )
    .option('--key-file <file>', 'A file that holds the key alone')
    .option('--ca-file <file>', 'Certificates to trust besides, in PEM')
    .option('--service-name <name>', "The deployment's name for itself", serviceNameOption, 'service')
    .option('--force', 'Send the key even if its checksum shows that it is none')
    .option('--smoke', 'Call every endpoint that the key may use, and hold each answer against the contract')
    .option('--with-signup', 'With --smoke and a test key: make one signup, and repeat it')
    .addHelpText(
      'after',
      `
The key comes from --key-file, PARTNER_API_KEY, standard input or a prompt that shows nothing of it, in that
order, and never from an argument. No redirect is followed. Other machines are asked by the proxy that HTTPS_PROXY or
HTTP_PROXY names, unless NO_PROXY names them. --smoke asks each endpoint two or three times and exits 1 when an answer
is not as the contract has it.

Examples:
  $ partner-api verify --url https://api.example --partner acme
  $ partner-api verify --url https://api.example --partner acme --smoke --with-signup --key-file test.key
  $ partner-api verify --url https://api.example --partner acme --module profiles countries < key.txt
  $ PARTNER_API_KEY=… partner-api verify --url http://127.0.0.1:8787 --partner demo --json | jq .data.modules`,
    )
    .action(action(verifyKey))
}

async function verifyKey(invocation: Invocation, options: VerifyOptions): Promise<void> {
  const base = parseDeploymentUrl(options.url)
  if (options.withSignup && !options.smoke) throw usageError('--with-signup belongs to --smoke.')
  if (base.protocol === 'http:' && !isLoopback(base)) {
    printNote('warning: http:// sends the key unencrypted to whoever is on the way.')
  }
  const key = await readCredential(options.keyFile)
  const keyId = parseKeyId(key)
  if (keyId === undefined && !options.force) {
    throw new CliError(
      1,
      'key_invalid',
      'The key was not sent, because its checksum is wrong: it was mistyped or cut off, or never was a key. ' +
        '--force sends it nevertheless.',
    )
  }
  const [{ createDeployment: connectTo }, { readVerification }] = await Promise.all([
    import('../verification/deployment.ts'),
    import('../verification/response.ts'),
  ])
  const names = createServiceNames(options.serviceName)
  const deployment = await connectTo(base, names, key, options.caFile)
  try {
    const verification = readVerification(
      await deployment.send({
        target: `/${names.name}/developer/verify-key`,
        body: { partner: options.partner },
      }),
      { key, keyId, partner: options.partner },
    )
    const smokeResults = options.smoke && await runSmoke(deployment, verification, names, options)
    await printResult(
      invocation,
      redactAll(smokeResults ? { ...verification, smoke: smokeResults } : verification),
      formatVerification(excerptAll(verification)) +
        (smokeResults ? `\n${formatSmokeResults(excerptAll(smokeResults))}` : ''),
    )
    if (smokeResults) reportSmokeResults(smokeResults)
    reportModules(options.module ?? [], verification)
  } finally {
    await deployment.close()
  }
}

async function runSmoke(
  deployment: Deployment,
  verification: Verification,
  names: ServiceNames,
  { withSignup = false }: VerifyOptions,
): Promise<readonly SmokeResult[]> {
  // Imported here because every schema of the wire comes with it.
  const { runSmokeTests: smoke } = await import('../verification/smoke.ts')
  return await withProgress((report) =>
    smoke(deployment, verification, names, withSignup, (done, total) => {
      report(`${done} of ${pluralize(total, 'endpoint')}`)
    })
  )
}

function reportSmokeResults(results: readonly SmokeResult[]): void {
  const count = (verdict: SmokeResult['verdict']) =>
    results.filter((trial) => trial.verdict === verdict).length
  const verdicts = ['ok', 'failed', 'unreachable', 'not_allowed', 'skipped'] as const
  const counts = verdicts.filter((verdict) => count(verdict) > 0)
    .map((verdict) => `${count(verdict)} ${verdictLabels[verdict]}`)
  printNote(`${pluralize(results.length, 'endpoint')}: ${joinList(counts) || 'nothing to call'}.`)
  if (count('failed') > 0) process.exitCode = 1
  else if (count('unreachable') > 0) process.exitCode = 3
}

function reportModules(wanted: readonly string[], verification: Verification): void {
  const notReady = wanted.filter(
    (wanted) => !verification.modules.some(({ module, ready }) => module === wanted && ready),
  )
  for (const module of notReady) printNote(whyNotReady(module, verification))
  if (notReady.length > 0) process.exitCode = 1
}

function formatVerification(verification: Verification): string {
  const { partner, key, modules, limits, version } = verification
  const members: [string, string][] = [
    ['partner', `${partner.slug}, ${partner.name}`],
    ['key', `${key.id}, ${key.name}, ${key.environment}, ${key.hint}`],
    ['expires', key.expires_at ?? 'never'],
    ...limits.map(({ policy, quota, window_seconds, remaining }): [string, string] => [
      `${printable(policy)} limit`,
      `${pluralize(quota, 'request')} in ${pluralize(window_seconds, 'second')}, ${
        remaining.toLocaleString('en')
      } left`,
    ]),
    ['changes', formatStaleness(verification)],
    ['version', version],
  ]
  if (key.rotation) {
    members.splice(3, 0, [
      'replaced by',
      `${key.rotation.successor_id}; stops to work at ${key.rotation.retires_at}`,
    ])
  }
  const rows = modules.map(({ module, active, ready, missing_scope }) => [
    module,
    active ? 'yes' : 'no',
    ready ? 'yes' : 'no',
    missing_scope ?? '',
  ])
  return `The key is valid.\n\n${formatDetails(members)}\n${
    formatTable(['module', 'active', 'ready', 'missing scope'], rows)
  }`
}

function formatStaleness({ max_staleness_ms, stale_if_error }: Verification): string {
  const usually = `bind within ${max_staleness_ms.toLocaleString('en')} ms`
  if (stale_if_error === undefined) return usually
  const { seconds, since } = stale_if_error
  const later = `${usually}, and up to ${
    seconds.toLocaleString('en')
  } s later while the store does not answer`
  return since === null ? later : `${later}, as it has not since ${since}`
}

const verdictLabels: Readonly<Record<SmokeResult['verdict'], string>> = {
  ok: 'ok',
  failed: 'FAILED',
  unreachable: 'UNREACHABLE',
  not_allowed: 'not allowed',
  skipped: 'skipped',
}

function formatSmokeResults(results: readonly SmokeResult[]): string {
  return formatTable(
    ['endpoint', 'status', 'ms', 'verdict'],
    results.map(({ method, path, status, ms, verdict, reasons }) => [
      `${method} ${path}`,
      status === null ? '–' : String(status),
      ms === null ? '–' : String(ms),
      [verdictLabels[verdict], reasons.join('; ')].filter(Boolean).join(': '),
    ]),
  )
}

function whyNotReady(wanted: string, { modules }: Verification): string {
  const found = modules.find(({ module }) => module === wanted)
  if (found === undefined) return `not ready: this deployment has no module ${wanted}.`
  if (!found.active) return `not ready: the module ${wanted} is not active for this partner.`
  return `not ready: the module ${wanted} needs the scope ${
    printable(found.missing_scope ?? 'that the key lacks')
  }.`
}
