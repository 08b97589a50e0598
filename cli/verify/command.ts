import type { Verification } from '../../core/wire.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { CliError, type ExitCode, usageError } from '../errors.ts'
import { durationOption, serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import { formatDetails, formatTable, joinList, pluralize, printable, yesOrNo } from '../output/text.ts'
import type { VerifyOptions } from './check.ts'
import { isLoopback, parseDeploymentUrl, parseKeyId, readCredential } from './credential.ts'
import type { SmokeResult } from './smoke.ts'

export function define(verify: CliCommand): void {
  verify
    .requiredOption('--url <base>', 'Address of the deployment, without /service')
    .requiredOption('--partner <slug>', 'Slug of the partner that owns the key')
    .option('--module <module...>', 'Exit with 1 unless these modules are ready')
    .option('--key-file <file>', 'A file that contains the key')
    .option('--ca-file <file>', 'Additional trusted certificates, in PEM format')
    .option(
      '--service-name <name>',
      'Service name of the deployment (default: the one in its API catalog, or service)',
      serviceNameOption,
    )
    .option('--force', 'Send the key even if its checksum is wrong')
    .option('--smoke', 'Call every endpoint that the key may use, and check the responses')
    .option('--with-signup', 'With --smoke and a test key: make one signup, and repeat it')
    .option('--timeout <duration>', 'Time for one whole check, 1s or more (default: 60s)', durationOption)
    .act(verifyKey)
    .details(`
Reads the key from --key-file, PARTNER_API_KEY, standard input or a hidden prompt, in that order, and never from an
argument. Does not follow redirects. Uses the proxy in HTTPS_PROXY or HTTP_PROXY, with the exceptions in NO_PROXY,
except for this machine. --smoke sends two or three requests to each endpoint and exits 1 if a response violates the
contract. The limit rotate is listed if the partner may rotate its keys.`)
    .examples(
      'partner-api verify --url https://api.example --partner acme',
      'partner-api verify --url https://api.example --partner acme --smoke --with-signup --key-file test.key',
      'partner-api verify --url https://api.example --partner acme --module profiles countries < key.txt',
      'PARTNER_API_KEY=… partner-api verify --url http://127.0.0.1:8787 --partner demo --json | jq .data.modules',
    )
}

async function verifyKey(invocation: Invocation, options: VerifyOptions): Promise<ExitCode> {
  const { io, output } = invocation
  const base = parseDeploymentUrl(options.url)
  if (options.withSignup && !options.smoke) throw usageError('--with-signup requires --smoke.')
  const { timeout = 60_000 } = options
  if (timeout < 1_000) throw usageError('--timeout must be 1s or more.')
  if (base.protocol === 'http:' && !isLoopback(base)) {
    output.note('warning: http:// sends the key unencrypted.')
  }
  const key = await readCredential(options.keyFile, io)
  const keyId = parseKeyId(key)
  if (keyId === undefined && !options.force) {
    const reason = 'its checksum is wrong, so it is mistyped or incomplete, or not a key at all'
    const step = 'Pass --force to send it anyway, for instance if it is an imported key of another system.'
    throw new CliError(1, 'key_invalid', `The key was not sent: ${reason}. ${step}`)
  }
  const { check } = await import('./check.ts')
  const request = { ...options, base, key, keyId, timeout }
  const { verification, smoke, notReady, exitCode } = await check(invocation, request)
  await output.print({
    data: smoke ? { ...verification, smoke } : verification,
    text: formatVerification(verification, output) + (smoke ? `\n${formatSmokeResults(smoke)}` : ''),
  })
  if (smoke) summarizeSmoke(output, smoke)
  for (const reason of notReady) output.note(`not ready: ${reason}`)
  return exitCode
}

const verdictLabels: Readonly<Record<SmokeResult['verdict'], string>> = {
  ok: 'ok',
  failed: 'FAILED',
  unreachable: 'UNREACHABLE',
  not_allowed: 'not allowed',
  skipped: 'skipped',
}

function summarizeSmoke(output: Output, results: readonly SmokeResult[]): void {
  const counts = Object.entries(verdictLabels).flatMap(([verdict, label]) => {
    const count = results.filter((result) => result.verdict === verdict).length
    return count === 0 ? [] : [`${count} ${label}`]
  })
  output.note(`${pluralize(results.length, 'endpoint')}: ${joinList(counts) || 'nothing to call'}.`)
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
      const window = policy === 'month' ? 'a month' : pluralize(window_seconds, 'second')
      const limit = `${pluralize(quota, 'request')} in ${window}`
      return [`${printable(policy)} limit`, `${limit}, ${remaining.toLocaleString('en')} left`] as const
    }),
    ['changes', formatStaleness(verification)],
    ['version', version],
  ]
  const rows = modules.map((
    { module, active, ready, missing_scope: missing },
  ) => [module, yesOrNo(active), yesOrNo(ready), missing ?? ''])
  const table = formatTable(['module', 'active', 'ready', 'missing scope'], rows, output)
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
  const rows = results.map(({ method, path, status, ms, verdict, reasons }) => {
    const reason = reasons.length === 0 ? '' : `: ${reasons.join('; ')}`
    return [`${method} ${path}`, `${status ?? '–'}`, `${ms ?? '–'}`, `${verdictLabels[verdict]}${reason}`]
  })
  return formatTable(['endpoint', 'status', 'ms', 'verdict'], rows)
}
