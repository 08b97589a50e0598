import { createServiceNames } from '../../core/http/headers.ts'
import type { CliCommand, Invocation } from '../command.ts'
import type { Checks, Finding } from '../doctor/check.ts'
import { MACHINE_CHECKS, SQLITE_CHECKS } from '../doctor/machine.ts'
import { type ExitCode, toCliError } from '../errors.ts'
import { serviceNameOption } from '../options.ts'
import type { Output } from '../output/print.ts'
import { pluralize, printable, redactAll } from '../output/text.ts'
import type { ServiceOptions } from '../service-options.ts'
import { describeStore, schemaStatus, timeOf, withStore } from '../store.ts'
import { parseDurableUrl } from '../store-url.ts'
import { parseDeploymentUrl, parseKeyId, readCredential } from '../verification/credential.ts'

interface DoctorOptions {
  readonly url?: readonly string[]
  readonly keyFile?: readonly string[]
  readonly serviceName: string
}

/** `doctor`. */
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
Changes nothing. Each finding has the command or the setting that mends it. Exits 1 if there is an error or a warning,
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
  const { results, run, exitCode } = createDiagnosis(output)
  let partner: string | undefined

  async function checkStore(report: (progress: string) => void): Promise<void> {
    const { SCHEMA_CHECKS, STORE_CHECKS } = await import('../doctor/store.ts')
    const schema = await schemaStatus(address, env)
    await run(SCHEMA_CHECKS, schema)
    if (address.kind === 'sqlite') await run(SQLITE_CHECKS, address.file)
    if (schema.current < schema.latest) return
    await withStore(invocation, { readOnly: true }, async (store) => {
      if (address.kind === 'postgres') {
        const { POSTGRES_CHECKS, readPostgres } = await import('../doctor/postgres.ts')
        await run(POSTGRES_CHECKS, await readPostgres(storeUrl, store, env))
      }
      partner = (await store.findKey(parseKeyId(key) ?? ''))?.partner.slug
      const { readKeys } = await import('../doctor/keys.ts')
      await run(await readKeys(store, timeOf(store), report), undefined)
      await run(STORE_CHECKS, { store, report })
    })
  }

  async function checkDeployment(base: URL): Promise<void> {
    const { DEPLOYMENT_CHECKS, readDeployment } = await import('../doctor/deployment.ts')
    const credential = partner === undefined ? undefined : { key, partner }
    const deployment = await readDeployment(base, createServiceNames(serviceName), env, credential)
    await run(DEPLOYMENT_CHECKS, deployment, { url: base.href })
  }

  await output.progress(async (report) => {
    const { keyFile } = await settingsOf<{ readonly keyFile?: string }>(program, 'verify')
    const served = await settingsOf<ServiceOptions>(program, 'serve')
    await run(MACHINE_CHECKS, { env, keyFiles: keyFile ? [...keyFiles, keyFile] : keyFiles, served })
    await run({ store: () => checkStore(report) }, undefined)
    for (const base of bases) await run({ deployment: checkDeployment }, base, { url: base.href })
  })
  const checks = redactAll(results)
  const rows = checks.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity))
  await output.result({ checks }, rows.map(formatResult).join(''))
  const count = (name: Severity) =>
    pluralize(results.filter(({ severity }) => severity === name).length, name)
  output.note(`${pluralize(results.length, 'check')}: ${count('error')}, ${count('warning')}.`)
  return exitCode()
}

/** The options of a command in the environment and the configuration file. */
async function settingsOf<Options extends object>(program: CliCommand, name: string): Promise<Options> {
  const { command } = await program.find([name])
  command.parseOptions([])
  return command.opts<Options>()
}

type Severity = Exclude<Finding['severity'], 'skipped'>
/** On a terminal, the worst is at the bottom. */
const order: readonly (Severity | null)[] = [null, 'info', 'warning', 'error']

interface Result {
  readonly check: string
  readonly status: 'ok' | 'found' | 'skipped'
  readonly severity: Severity | null
  readonly message: string | null
  readonly command: string | null
}

const nothing = { severity: null, message: null, command: null }

/** Collects the results of checks. One that throws is an error, and the others still run. */
function createDiagnosis(output: Output) {
  const results: Result[] = []
  let isUnreachable = false

  function toFinding(thrown: unknown): Finding {
    const { exitCode, message } = toCliError(thrown)
    isUnreachable ||= exitCode === 3
    const [sentence = '', command] = message.split(/ [^.]+: (?=partner-api )/)
    return { severity: 'error', message: sentence, command }
  }

  return {
    results,

    /** @param facts Further members of each result. */
    async run<Context>(checks: Checks<Context>, context: Context, facts: object = {}): Promise<void> {
      for (const [check, judge] of Object.entries(checks)) {
        const findings = [await Promise.resolve(context).then(judge).catch(toFinding) || []].flat()
        if (findings.length === 0) results.push({ check, status: 'ok', ...nothing, ...facts })
        for (const { severity, message, command = null, facts: own } of findings) {
          const isSkipped = severity === 'skipped'
          const outcome = isSkipped
            ? { status: severity, severity: null }
            : { status: 'found', severity } as const
          results.push({
            check,
            ...outcome,
            message,
            command: command && output.withStore(command),
            ...facts,
            ...own,
          })
        }
      }
    },

    exitCode(): ExitCode {
      if (isUnreachable) return 3
      return results.some(({ severity }) => severity === 'error' || severity === 'warning') ? 1 : 0
    },
  }
}

function formatResult({ check, status, severity, message, command }: Result): string {
  const title = `${(severity ?? status).padEnd(8)} ${check}${
    message === null ? '' : `: ${printable(message)}`
  }\n`
  return command === null ? title : `${title}         To mend it: ${printable(command)}\n`
}
