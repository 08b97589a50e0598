import { createServiceNames } from '../../core/http/headers.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { type Check, createDiagnosis, type Result, type Severity } from './check.ts'
import { checkAccess, checkDisk, checkServeOptions } from './machine.ts'
import { type ExitCode, toCliError } from '../errors.ts'
import { serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import { pluralize, printable, redactAll } from '../output/text.ts'
import type { ServiceOptions } from '../serve/service-options.ts'
import { describeStore, schemaStatus, timeOf, withStore } from '../store/open.ts'
import { parseDurableUrl } from '../store/url.ts'
import { parseDeploymentUrl, parseKeyId, readCredential } from '../verify/credential.ts'
import { readWebhookKey } from '../webhooks/encryption-key.ts'
import { verifyAudit } from '../commands/audit.ts'

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

async function diagnose(
  program: CliCommand,
  invocation: Invocation,
  options: DoctorOptions,
): Promise<ExitCode> {
  const { storeUrl, io, io: { env }, output } = invocation
  const { url: urls = [], keyFile: keyFiles = [], serviceName } = options
  const address = parseDurableUrl(storeUrl, 'doctor checks a store that lasts: sqlite:FILE or postgres://….')
  await describeStore(invocation)
  const bases = urls.map(parseDeploymentUrl)
  const hasKey = bases.length > 0 && (keyFiles.length > 0 || env['PARTNER_API_KEY'])
  const key = hasKey ? await readCredential(keyFiles[0], io) : ''
  const verify = await settingsOf<{ readonly keyFile?: string }>(program, 'verify')
  const serve = await settingsOf<ServiceOptions & { readonly webhookKeyFile?: string }>(program, 'serve')
  const { webhookKeyFile, trustedProxies = 0 } = serve
  const webhookKey = await readWebhookKey(webhookKeyFile, invocation).catch(() => undefined)
  let partner: string | undefined

  async function checkStore(check: Check, report: (progress: string) => void): Promise<void> {
    checkAccess(check, 'key-files', [...keyFiles, verify.keyFile ?? '', webhookKeyFile ?? ''].filter(Boolean))
    checkServeOptions(check, serve)
    const { current, latest } = await schemaStatus(address, env)
    const message = `The store has schema version ${current}, and this program needs ${latest}.`
    const command = current < latest ? 'partner-api migrate' : 'npm install --global partner-api'
    check('schema', current !== latest && { message, command })
    if (address.kind === 'sqlite') {
      checkAccess(check, 'store-files', [address.file])
      checkDisk(check, address.file)
      const { checkSqlite } = await import('./sqlite.ts')
      if (current === latest) checkSqlite(check, address.file)
    }
    if (current < latest) return
    await withStore(invocation, { readOnly: true }, async (store) => {
      if (address.kind === 'postgres') {
        const { checkPostgres } = await import('./postgres.ts')
        await checkPostgres(check, storeUrl, store, env)
      }
      partner = (await store.findKey(parseKeyId(key) ?? ''))?.partner.slug
      const { checkKeys } = await import('./keys.ts')
      await checkKeys(check, store, timeOf(store), report)
      const { checkWebhooks } = await import('./webhooks.ts')
      await checkWebhooks(check, store, webhookKey)
      report('Verifying the audit log …')
      const broken = await verifyAudit(store).then(() => undefined, toCliError)
      if (broken?.exitCode === 3) throw broken
      const command = 'partner-api audit verify'
      check('audit-log', broken && { message: broken.message.replace(/:$/, '.'), command })
    })
  }

  const { results, run, exitCode } = createDiagnosis(output)
  await output.progress(async (report) => {
    await run('store', (check) => checkStore(check, report))
    for (const base of bases) {
      const { checkDeployment } = await import('./deployment.ts')
      const names = createServiceNames(serviceName)
      const credential = partner === undefined ? undefined : { key, partner }
      await run(
        'deployment',
        (check) => checkDeployment(check, base, names, env, trustedProxies, credential),
        { url: base.href },
      )
    }
  })
  await printResults(output, results)
  if (bases.length > 0 && partner === undefined) {
    output.note(
      'Limits and staleness of a service are checked with a key of the store: --key-file or PARTNER_API_KEY.',
    )
  }
  return exitCode()
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
