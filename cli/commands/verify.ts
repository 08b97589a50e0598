import { type Command, Option } from 'commander'
import process from 'node:process'
import { MODULE_NAMES } from '../../core/policy/modules.ts'
import { nameService } from '../../core/service-names.ts'
import { usageFailure } from '../failure.ts'
import { readCredential } from '../input/credential.ts'
import { serviceName } from '../input/service-name.ts'
import { type Invocation, invocationOf } from '../invocation.ts'
import { printNote, printResult } from '../output/print.ts'
import { details, table } from '../output/table.ts'
import { counted, printable } from '../output/text.ts'
import type { Verification } from '../verification/read.ts'

interface VerifyOptions {
  readonly url: string
  readonly partner: string
  readonly module?: readonly string[]
  readonly keyFile?: string
  readonly serviceName: string
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
    .option('--service-name <name>', "The deployment's name for itself", serviceName, 'service')
    .addHelpText(
      'after',
      `
The key comes from --key-file, PARTNER_API_KEY, standard input or a prompt that shows nothing of it, in that
order, and never from an argument. No redirect is followed.

Examples:
  $ partner-api verify --url https://api.example --partner acme
  $ partner-api verify --url https://api.example --partner acme --module profiles countries < key.txt
  $ PARTNER_API_KEY=… partner-api verify --url http://127.0.0.1:8787 --partner demo --json | jq .data.modules`,
    )
    .action((options: VerifyOptions, command: Command) => verifyKey(invocationOf(command), options))
}

async function verifyKey(invocation: Invocation, options: VerifyOptions): Promise<void> {
  const base = parseBase(options.url)
  if (base.protocol === 'http:' && !isLoopback(base.hostname)) {
    printNote('warning: http:// sends the key unencrypted to whoever is on the way.')
  }
  const key = await readCredential(options.keyFile)
  const [{ askVerifyKey }, { readVerification }] = await Promise.all([
    import('../verification/ask.ts'),
    import('../verification/read.ts'),
  ])
  const names = nameService(options.serviceName)
  const verification = readVerification(
    await askVerifyKey({ base, names, partner: options.partner, key }),
    key,
  )
  await printResult(invocation, verification, readable(verification))
  const notReady = (options.module ?? []).filter(
    (wanted) => !verification.modules.some(({ module, ready }) => module === wanted && ready),
  )
  for (const module of notReady) printNote(whyNotReady(module, verification))
  if (notReady.length > 0) process.exitCode = 1
}

function parseBase(text: string): URL {
  const base = URL.parse(text)
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw usageFailure('--url has to be an http:// or https:// address, such as https://api.example.')
  }
  if (base.username || base.password || text.includes('?') || text.includes('#')) {
    throw usageFailure('--url is only where the deployment is: it has no credentials, query or fragment.')
  }
  return base
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127\.[\d.]+$/.test(host)
}

function readable({ partner, key, modules, limits, version, max_staleness_ms }: Verification): string {
  const members: [string, string][] = [
    ['partner', `${partner.slug}, ${partner.name}`],
    ['key', `${key.id}, ${key.name}, ${key.environment}, ${key.hint}`],
    ['expires', key.expires_at ?? 'never'],
    ...limits.map(({ policy, quota, window_seconds, remaining }): [string, string] => [
      `${printable(policy)} limit`,
      `${counted(quota, 'request')} in ${counted(window_seconds, 'second')}, ${
        remaining.toLocaleString('en')
      } left`,
    ]),
    ['changes', `bind within ${max_staleness_ms.toLocaleString('en')} ms`],
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
  return `The key is valid.\n\n${details(members)}\n${
    table(['module', 'active', 'ready', 'missing scope'], rows)
  }`
}

function whyNotReady(wanted: string, { modules }: Verification): string {
  const found = modules.find(({ module }) => module === wanted)
  if (found === undefined) return `not ready: this deployment has no module ${wanted}.`
  if (!found.active) return `not ready: the module ${wanted} is not active for this partner.`
  return `not ready: the module ${wanted} needs the scope ${
    printable(found.missing_scope ?? 'that the key lacks')
  }.`
}
