import { createRequestBuilder, type RequestSpec } from '../../adapters/client/transport.ts'
import { createServiceNames } from '../../core/http/headers.ts'
import { isObject } from '../../core/lib/json.ts'
import { MAX_TIMER_MS } from '../../core/lib/options.ts'
import { API_VERSION } from '../../core/model.ts'
import type { Verification } from '../../core/wire.ts'
import type { ExitCode } from '../errors.ts'
import type { Invocation } from '../command.ts'
import { pluralize, printable } from '../output/text.ts'
import { suggest } from '../suggest.ts'
import {
  type DeploymentConnection,
  type DeploymentResponse,
  displayName,
  openConnection,
  urlBelow,
} from './deployment.ts'
import { movedTo, nextStep, readVerification, redirectError, verifyKeyPath } from './response.ts'
import type { SmokeResult } from './smoke.ts'

/** The options of `verify`. Durations are in milliseconds. */
export interface VerifyOptions {
  readonly url: string
  readonly partner: string
  readonly module?: readonly string[]
  readonly keyFile?: string
  readonly caFile?: string
  /** Found in the API catalog by default. */
  readonly serviceName?: string
  readonly force?: true
  readonly smoke?: true
  readonly withSignup?: true
  readonly timeout?: number
}

interface CheckRequest extends VerifyOptions {
  readonly base: URL
  readonly key: string
  readonly keyId: string | undefined
  readonly timeout: number
}

/** Below this, clocks and networks differ in practice. */
const maxClockSkewMs = 60_000

/** @throws {CliError} for any response of verify-key but the valid one to this request. */
export async function check({ io, output }: Invocation, request: CheckRequest) {
  const { base, key, partner, caFile, serviceName, smoke: isSmoke, withSignup = false } = request
  const deadline = AbortSignal.timeout(Math.min(request.timeout, MAX_TIMER_MS))
  const connection = await openConnection(base, io.env, caFile, deadline)
  try {
    const names = createServiceNames(serviceName ?? await findServiceName(connection, base))
    const build = createRequestBuilder(base, names.name, key)
    const send = (spec: RequestSpec) => connection.request(build(spec))
    const response = await send({ target: verifyKeyPath(names), body: { partner } })
    for (const warning of clockWarnings(response)) output.note(warning)
    const verification = readVerification(response, { ...request, names })
    const version = displayName(verification.version)
    if (version !== API_VERSION) {
      output.note(`warning: The deployment has API version ${version}, and this program ${API_VERSION}.`)
    }
    const testEndpoints = () =>
      output.progress(async (report) => {
        // Loaded here, with the schemas of all endpoints.
        const { runSmokeTests } = await import('./smoke.ts')
        return runSmokeTests(send, verification, names, base, withSignup, (done, total) => {
          report(`${done} of ${pluralize(total, 'endpoint')}`)
        })
      })
    const smoke = isSmoke ? await testEndpoints() : undefined
    const notReady = findNotReady(request.module ?? [], verification)
    return { exitCode: exitCodeOf(notReady, smoke ?? []), verification, smoke, notReady }
  } finally {
    await connection.close()
  }
}

function exitCodeOf(notReady: readonly string[], smoke: readonly SmokeResult[]): ExitCode {
  const verdicts = new Set(smoke.map(({ verdict }) => verdict))
  if (notReady.length > 0 || verdicts.has('failed')) return 1
  return verdicts.has('unreachable') ? 3 : 0
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
    const reasons: string[] = []
    if (found === undefined) {
      const meant = suggest(module, modules.map((each) => displayName(each.module)))
      const why = meant === '' ? ': its release may be older.' : `.${meant}`
      reasons.push(`this deployment has no module ${module}${why}`)
    }
    if (!active) {
      const step = nextStep('module_inactive', subject)
      reasons.push(`the module ${module} is not active for this partner. ${step}`)
    }
    if (scope !== null) {
      const step = nextStep('scope_missing', subject)
      reasons.push(`the module ${module} needs the scope ${printable(scope)}. ${step}`)
    }
    return reasons
  })
}

const catalogPath = '/.well-known/api-catalog'

/**
 * The name of the service at `base` in its API catalog, or the default one. A redirect is
 * thrown before the key is sent.
 */
async function findServiceName(connection: DeploymentConnection, base: URL): Promise<string> {
  const headers = { accept: 'application/linkset+json' }
  const response = await connection.request({ url: urlBelow(base, catalogPath), method: 'GET', headers })
  if (movedTo(response, catalogPath) !== undefined) throw redirectError(response, catalogPath)
  return readCatalog(response, base) ?? 'service'
}

/** The name of the first service at this address in an API catalog (RFC 9727). */
function readCatalog({ status, json: catalog }: DeploymentResponse, base: URL): string | undefined {
  if (status !== 200 || !isObject(catalog) || !Array.isArray(catalog['linkset'])) return undefined
  for (const context of catalog['linkset']) {
    const descriptions = isObject(context) ? context['service-desc'] : undefined
    const href = Array.isArray(descriptions) && isObject(descriptions[0])
      ? descriptions[0]['href']
      : undefined
    const url = typeof href === 'string' ? URL.parse(href, urlBelow(base, catalogPath)) : null
    const [, prefix = '', name] =
      /^((?:\/[^/]+)*)\/([a-z][a-z0-9-]{0,62})\/openapi\.json$/.exec(url?.pathname ?? '') ?? []
    // A service below a path that its proxy removes knows only what follows it, or nothing.
    if (url?.origin === base.origin && base.pathname.endsWith(prefix) && name !== undefined) return name
  }
  return undefined
}
