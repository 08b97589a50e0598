import { createRequestBuilder, type RequestSpec } from '../../adapters/client/transport.ts'
import { createServiceNames, type ServiceNames } from '../../core/http/headers.ts'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { MAX_TIMER_MS } from '../../core/lib/options.ts'
import { API_VERSION, type Verification } from '../../core/wire.ts'
import { type ExitCode, toCliError } from '../errors.ts'
import type { Invocation } from '../command.ts'
import { pluralize, printable } from '../output/text.ts'
import {
  type Connection,
  type DeploymentResponse,
  displayName,
  NotThisServiceError,
  openConnection,
  urlBelow,
} from './deployment.ts'
import { movedTo, nextStep, readVerification, redirectError, verifyKeyPath } from './response.ts'

/** Those of the command line. Durations are in milliseconds. */
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
  readonly watch?: true
  readonly interval?: number
}

interface CheckRequest extends VerifyOptions {
  readonly base: URL
  readonly key: string
  readonly keyId: string | undefined
  readonly timeout: number
}

/** Below this, clocks and networks differ in practice. */
const maxClockSkewMs = 60_000

/** @param signal Ends the check early. */
export async function check({ io, output }: Invocation, request: CheckRequest, signal?: AbortSignal) {
  const { base, key, partner, caFile, serviceName, smoke: isSmoke, withSignup = false } = request
  const warnings: string[] = []
  const deadline = AbortSignal.timeout(Math.min(request.timeout, MAX_TIMER_MS))
  const ending = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
  const connection = await openConnection(base, io.env, caFile, ending)
  try {
    const names = serviceName === undefined
      ? await findServiceNames(connection, base)
      : createServiceNames(serviceName)
    const build = createRequestBuilder(base, names.name, key)
    const send = (spec: RequestSpec) => connection.request(build(spec))
    const response = await send({ target: verifyKeyPath(names), body: { partner } })
    warnings.push(...clockWarnings(response))
    const verification = await readVerificationAt(connection, response, names, request)
    const version = displayName(verification.version)
    if (version !== API_VERSION) {
      warnings.push(`warning: The deployment has API version ${version}, and this program ${API_VERSION}.`)
    }
    const smoke = isSmoke && await output.progress(async (report) => {
      // Loaded here, with the schemas of all endpoints.
      const { runSmokeTests } = await import('./smoke.ts')
      const readDocument = () => get(connection, base, `/${names.name}/openapi.json`)
      return runSmokeTests(send, readDocument, verification, names, base, withSignup, (done, total) => {
        report(`${done} of ${pluralize(total, 'endpoint')}`)
      })
    })
    const notReady = findNotReady(request.module ?? [], verification)
    const verdicts = new Set(smoke?.map(({ verdict }) => verdict))
    const isRefused = notReady.length > 0 || verdicts.has('failed')
    const exitCode: ExitCode = isRefused ? 1 : verdicts.has('unreachable') ? 3 : 0
    return { exitCode, verification, smoke, notReady, warnings }
  } catch (thrown) {
    const error = toCliError(thrown)
    if (error.code === 'internal') throw thrown
    return { exitCode: error.exitCode, error, notReady: [], warnings }
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
    if (!(error instanceof NotThisServiceError)) throw error
    const found = await findElsewhere(connection, request.base, names)
    if (found === undefined) throw error
    const step = `The service is at another address: pass ${found}.`
    throw new NotThisServiceError(error.url, error.reason, step)
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
    const reasons = [
      found === undefined && `this deployment has no module ${module}: its release may be older.`,
      !active &&
      `the module ${module} is not active for this partner. ${nextStep('module_inactive', subject)}`,
      scope !== null &&
      `the module ${module} needs the scope ${printable(scope)}. ${nextStep('scope_missing', subject)}`,
    ]
    return reasons.filter((reason) => reason !== false)
  })
}

const catalogPath = '/.well-known/api-catalog'
const headers = { accept: 'application/json, application/linkset+json' }
const get = (connection: Connection, base: URL, path: string) =>
  connection.request({ url: urlBelow(base, path), method: 'GET', headers })
const maxAncestors = 4
const maxServices = 3

/** The names of the service at `base` in its API catalog, or the default ones. A redirect is thrown before the key is sent. */
async function findServiceNames(connection: Connection, base: URL): Promise<ServiceNames> {
  const response = await get(connection, base, catalogPath)
  if (movedTo(response, catalogPath) !== undefined) throw redirectError(response, catalogPath)
  const services = readCatalog(response, base).filter((service) => service.base.href === base.href)
  return services[0]?.names ?? createServiceNames('service')
}

/** Looks for the service at `base` and above it. @returns The options of verify that find it. */
async function findElsewhere(connection: Connection, base: URL, tried: ServiceNames) {
  const segments = base.pathname.split('/').filter(Boolean)
  for (let end = segments.length; end >= Math.max(0, segments.length - maxAncestors); end--) {
    const ancestor = new URL(`/${segments.slice(0, end).join('/')}`, base)
    const catalog = await get(connection, ancestor, catalogPath).catch(() => undefined)
    const services = [
      ...catalog === undefined ? [] : readCatalog(catalog, ancestor),
      ...[...namesOf(segments[end]), tried].map((names) => ({ base: ancestor, names })),
    ]
    for (const { base: { href }, names } of services.slice(0, maxServices)) {
      if (href === base.href && names.name === tried.name) continue
      if (!await isService(connection, new URL(href), names)) continue
      const address = displayName(href.replace(/\/$/, ''))
      return `--url ${address}${names.name === 'service' ? '' : ` --service-name ${names.name}`}`
    }
  }
  return undefined
}

/** Services at this origin in an API catalog (RFC 9727): the key must not go to another one. */
function readCatalog({ status, text }: DeploymentResponse, base: URL) {
  const catalog = status === 200 ? parseJson(text) : undefined
  if (!isObject(catalog) || !Array.isArray(catalog['linkset'])) return []
  return catalog['linkset'].flatMap((context) => {
    const descriptions = isObject(context) ? context['service-desc'] : undefined
    const href = Array.isArray(descriptions) && isObject(descriptions[0])
      ? descriptions[0]['href']
      : undefined
    const url = typeof href === 'string' ? URL.parse(href, urlBelow(base, catalogPath)) : null
    const [, prefix = '', name] = /^((?:\/[^/]+)*)\/([^/]+)\/openapi\.json$/.exec(url?.pathname ?? '') ?? []
    if (url?.origin !== base.origin) return []
    // A service below a path that its proxy removes knows only what follows it, or nothing.
    const at = base.pathname.endsWith(prefix) ? base : new URL(prefix, base)
    return namesOf(name).map((names) => ({ base: at, names }))
  })
}

function namesOf(name: string | undefined): ServiceNames[] {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name ?? '') ? [createServiceNames(name!)] : []
}

/** Every response of the service has its version; health is 200 or 503. */
async function isService(connection: Connection, base: URL, names: ServiceNames): Promise<boolean> {
  const health = await get(connection, base, `/${names.name}/health`).catch(() => undefined)
  return health?.header(names.versionHeader) !== undefined && health.status !== 404
}
