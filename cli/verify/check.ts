/** One check of a key against a deployment. */
import { createServiceNames, type ServiceNames } from '../../core/http/headers.ts'
import { MAX_TIMER_MS } from '../../core/lib/options.ts'
import { API_VERSION, type Verification } from '../../core/wire.ts'
import { CliError, type ExitCode, toCliError } from '../errors.ts'
import type { Invocation } from '../command.ts'
import { pluralize, printable } from '../output/text.ts'
import {
  checkAddressStep,
  type Connection,
  createDeployment,
  type DeploymentResponse,
  displayName,
  openConnection,
} from './deployment.ts'
import { findElsewhere, findServiceNames } from './discovery.ts'
import { nextStep } from './next-step.ts'
import { readVerification, verifyKeyPath } from './response.ts'
import type { SmokeResult } from './smoke.ts'

export interface CheckRequest {
  readonly base: URL
  readonly key: string
  readonly keyId: string | undefined
  readonly partner: string
  /** Modules that must be ready. */
  readonly module?: readonly string[]
  readonly caFile?: string
  /** Found in the API catalog by default. */
  readonly serviceName?: string
  readonly smoke?: true
  readonly withSignup?: boolean
  /** Milliseconds for the whole check. */
  readonly timeout: number
}

export interface CheckResult {
  readonly exitCode: ExitCode
  /** Why there is no verification. */
  readonly error?: CliError
  readonly verification?: Verification
  readonly smoke?: readonly SmokeResult[]
  readonly notReady: readonly string[]
  readonly warnings: readonly string[]
}

/** Below this, clocks and networks differ in practice. */
const maxClockSkewMs = 60_000

/** @param signal Ends the check early. */
export async function check(
  { io, output }: Invocation,
  request: CheckRequest,
  signal?: AbortSignal,
): Promise<CheckResult> {
  const { base, key, partner, module: modules = [] } = request
  const warnings: string[] = []
  const deadline = AbortSignal.timeout(Math.min(request.timeout, MAX_TIMER_MS))
  const ending = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
  const connection = await openConnection(base, io.env, request.caFile, ending)
  try {
    const names = request.serviceName === undefined
      ? await findServiceNames(connection, base)
      : createServiceNames(request.serviceName)
    const deployment = createDeployment(connection, base, names, key)
    const response = await deployment.send({ target: verifyKeyPath(names), body: { partner } })
    warnings.push(...clockWarnings(response))
    const verification = await readVerificationAt(connection, response, names, request)
    const version = displayName(verification.version)
    if (version !== API_VERSION) {
      warnings.push(`warning: The deployment has API version ${version}, and this program ${API_VERSION}.`)
    }
    const smoke = request.smoke && await output.progress(async (report) => {
      // Loaded here, with the schemas of all endpoints.
      const { runSmokeTests } = await import('./smoke.ts')
      return runSmokeTests(deployment, verification, names, request.withSignup ?? false, (done, total) => {
        report(`${done} of ${pluralize(total, 'endpoint')}`)
      })
    })
    const notReady = findNotReady(modules, verification)
    const verdicts = new Set(smoke?.map(({ verdict }) => verdict))
    const isRefused = notReady.length > 0 || verdicts.has('failed')
    const exitCode = isRefused ? 1 : verdicts.has('unreachable') ? 3 : 0
    return { exitCode, verification, ...(smoke && { smoke }), notReady, warnings }
  } catch (error) {
    const cliError = toCliError(error)
    if (cliError.code === 'internal') throw error
    return { exitCode: cliError.exitCode, error: cliError, notReady: [], warnings }
  } finally {
    await connection.close()
  }
}

/** Says where the service is if it is not there. */
async function readVerificationAt(
  connection: Connection,
  response: DeploymentResponse,
  names: ServiceNames,
  request: CheckRequest,
): Promise<Verification> {
  try {
    return readVerification(response, { ...request, names })
  } catch (error) {
    if (toCliError(error).code !== 'not_this_service') throw error
    const found = await findElsewhere(connection, request.base, names)
    if (found === undefined) throw error
    const { exitCode, code, message } = toCliError(error)
    const step = `The service is at another address: pass ${found}.`
    const detail = message.replace(checkAddressStep, () => step)
    throw new CliError(exitCode, code, detail)
  }
}

function clockWarnings({ header }: DeploymentResponse): string[] {
  // A cache returns the date of the response that it has stored.
  const skewMs = header('age') === undefined ? Date.now() - Date.parse(header('date') ?? '') : 0
  if (!(Math.abs(skewMs) > maxClockSkewMs)) return []
  const minutes = pluralize(Math.round(Math.abs(skewMs) / 60_000), 'minute')
  const direction = skewMs > 0 ? 'ahead of' : 'behind'
  const skew = `The clock of this machine is ${minutes} ${direction} that of the deployment.`
  return [`warning: ${skew} Correct it: certificates and periods of reports depend on it.`]
}

function findNotReady(wanted: readonly string[], { modules, key, partner }: Verification): string[] {
  return wanted.flatMap((module) => {
    const found = modules.find((each) => each.module === module)
    if (found?.ready) return []
    const { active = true, missing_scope: scope = null } = found ?? {}
    const subject = { keyId: key.id, partner: partner.slug, module, scope }
    return [
      ...found === undefined ? [`this deployment has no module ${module}: its release may be older.`] : [],
      ...active
        ? []
        : [`the module ${module} is not active for this partner. ${nextStep('module_inactive', subject)}`],
      ...scope === null
        ? []
        : [`the module ${module} needs the scope ${printable(scope)}. ${nextStep('scope_missing', subject)}`],
    ]
  })
}
