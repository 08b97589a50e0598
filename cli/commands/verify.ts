import { Option } from 'commander'
import { createServiceNames, type ServiceNames } from '../../core/http/headers.ts'
import { MODULE_NAMES } from '../../core/policy/modules.ts'
import type { Verification } from '../../core/wire.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { CliError, type ExitCode, usageError } from '../errors.ts'
import { serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import {
  excerptAll,
  formatDetails,
  formatTable,
  joinList,
  pluralize,
  printable,
  redactAll,
  yesOrNo,
} from '../output/text.ts'
import { isLoopback, parseDeploymentUrl, parseKeyId, readCredential } from '../verification/credential.ts'
import type { Deployment } from '../verification/deployment.ts'
import type { SmokeResult } from '../verification/smoke.ts'

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
export function define(verify: CliCommand): void {
  verify
    .requiredOption('--url <base>', 'Address of the deployment, without /service')
    .requiredOption('--partner <slug>', 'Slug of the partner that owns the key')
    .addOption(
      new Option('--module <module...>', 'Exit with 1 unless these modules are ready').choices(MODULE_NAMES),
    )
    .option('--key-file <file>', 'A file that contains the key')
    .option('--ca-file <file>', 'Additional trusted certificates, in PEM format')
    .option('--service-name <name>', 'Service name of the deployment', serviceNameOption, 'service')
    .option('--force', 'Send the key even if its checksum is wrong')
    .option('--smoke', 'Call every endpoint that the key may use, and check the responses')
    .option('--with-signup', 'With --smoke and a test key: make one signup, and repeat it')
    .act(verifyKey)
    .details(`
Reads the key from --key-file, PARTNER_API_KEY, standard input or a hidden prompt, in that order, and never from an
argument. Does not follow redirects. Uses the proxy in HTTPS_PROXY or HTTP_PROXY, with the exceptions in NO_PROXY,
except for this machine. --smoke sends two or three requests to each endpoint and exits 1 if a response violates the
contract.`)
    .examples(
      'partner-api verify --url https://api.example --partner acme',
      'partner-api verify --url https://api.example --partner acme --smoke --with-signup --key-file test.key',
      'partner-api verify --url https://api.example --partner acme --module profiles countries < key.txt',
      'PARTNER_API_KEY=… partner-api verify --url http://127.0.0.1:8787 --partner demo --json | jq .data.modules',
    )
}

async function verifyKey({ io, output }: Invocation, options: VerifyOptions): Promise<ExitCode> {
  const base = parseDeploymentUrl(options.url)
  if (options.withSignup && !options.smoke) throw usageError('--with-signup requires --smoke.')
  if (base.protocol === 'http:' && !isLoopback(base)) {
    output.note('warning: http:// sends the key unencrypted.')
  }
  const key = await readCredential(options.keyFile, io)
  const keyId = parseKeyId(key)
  if (keyId === undefined && !options.force) {
    throw new CliError(
      1,
      'key_invalid',
      'The key was not sent: its checksum is wrong, so it is mistyped or incomplete, or not a key at all. ' +
        'Pass --force to send it anyway.',
    )
  }
  const [{ connectToDeployment }, { readVerification }] = await Promise.all([
    import('../verification/deployment.ts'),
    import('../verification/response.ts'),
  ])
  const names = createServiceNames(options.serviceName)
  const { partner, module: modules = [] } = options
  const deployment = await connectToDeployment(base, names, key, io.env, options.caFile)
  try {
    const response = await deployment.send({
      target: `/${names.name}/developer/verify-key`,
      body: { partner },
    })
    const verification = readVerification(response, { key, keyId, partner })
    const results = options.smoke && await runSmoke(output, deployment, verification, names, options)
    await output.result(
      redactAll(results ? { ...verification, smoke: results } : verification),
      formatVerification(excerptAll(verification), output) +
        (results ? `\n${formatSmokeResults(excerptAll(results))}` : ''),
    )
    const smokeCode = results ? reportSmokeResults(output, results) : 0
    return reportModules(output, modules, verification) || smokeCode
  } finally {
    await deployment.close()
  }
}

async function runSmoke(
  output: Output,
  deployment: Deployment,
  verification: Verification,
  names: ServiceNames,
  { withSignup = false }: VerifyOptions,
): Promise<readonly SmokeResult[]> {
  // Loaded here, with the schemas of all endpoints.
  const { runSmokeTests } = await import('../verification/smoke.ts')
  return await output.progress((report) =>
    runSmokeTests(deployment, verification, names, withSignup, (done, total) => {
      report(`${done} of ${pluralize(total, 'endpoint')}`)
    })
  )
}

const verdictLabels: Readonly<Record<SmokeResult['verdict'], string>> = {
  ok: 'ok',
  failed: 'FAILED',
  unreachable: 'UNREACHABLE',
  not_allowed: 'not allowed',
  skipped: 'skipped',
}

function reportSmokeResults(output: Output, results: readonly SmokeResult[]): ExitCode {
  const counts = Object.entries(verdictLabels).flatMap(([verdict, label]) => {
    const count = results.filter((result) => result.verdict === verdict).length
    return count === 0 ? [] : [`${count} ${label}`]
  })
  output.note(`${pluralize(results.length, 'endpoint')}: ${joinList(counts) || 'nothing to call'}.`)
  if (results.some(({ verdict }) => verdict === 'failed')) return 1
  return results.some(({ verdict }) => verdict === 'unreachable') ? 3 : 0
}

function reportModules(output: Output, wanted: readonly string[], { modules }: Verification): ExitCode {
  const reasons = wanted.flatMap((name) => {
    const found = modules.find(({ module }) => module === name)
    if (found === undefined) return `this deployment has no module ${name}`
    if (found.ready) return []
    if (!found.active) return `the module ${name} is not active for this partner`
    return `the module ${name} needs the scope ${printable(found.missing_scope ?? 'it requires')}`
  })
  for (const reason of reasons) output.note(`not ready: ${reason}.`)
  return reasons.length > 0 ? 1 : 0
}

function formatVerification(verification: Verification, output: Output): string {
  const { partner, key, modules, limits, version } = verification
  const { rotation } = key
  const details: readonly (readonly [string, string])[] = [
    ['partner', `${partner.slug}, ${partner.name}`],
    ['key', `${key.id}, ${key.name}, ${key.environment}, ${key.hint}`],
    ['expires', key.expires_at ?? 'never'],
    ...rotation
      ? [['replaced by', `${rotation.successor_id}; stops working at ${rotation.retires_at}`] as const]
      : [],
    ...limits.map(({ policy, quota, window_seconds, remaining }) => {
      const limit = `${pluralize(quota, 'request')} in ${pluralize(window_seconds, 'second')}`
      return [`${printable(policy)} limit`, `${limit}, ${remaining.toLocaleString('en')} left`] as const
    }),
    ['changes', formatStaleness(verification)],
    ['version', version],
  ]
  const table = formatTable(
    ['module', 'active', 'ready', 'missing scope'],
    modules.map(({ module, active, ready, missing_scope: missing }) => [
      ...[module, yesOrNo(active), yesOrNo(ready), missing ?? ''],
    ]),
    output,
  )
  return `The key is valid.\n\n${formatDetails(details)}\n${table}`
}

function formatStaleness({ max_staleness_ms, stale_if_error }: Verification): string {
  const usually = `take effect within ${max_staleness_ms.toLocaleString('en')} ms`
  if (stale_if_error === undefined) return usually
  const { seconds, since } = stale_if_error
  const later = `${usually}, or up to ${seconds.toLocaleString('en')} s later while the store is unavailable`
  return since === null ? later : `${later}, as it has been since ${since}`
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
