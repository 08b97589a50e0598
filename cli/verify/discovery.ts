/** Finds where the service of a deployment is, without sending the key. */
import { createServiceNames, type ServiceNames } from '../../core/http/headers.ts'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { CliError } from '../errors.ts'
import { type Connection, type DeploymentResponse, displayName, urlBelow } from './deployment.ts'

interface Location {
  readonly base: URL
  readonly names: ServiceNames
}

const catalogPath = '/.well-known/api-catalog'
const keyless = { method: 'GET', headers: { accept: 'application/json, application/linkset+json' } } as const
/** Bounds the requests of a search. */
const maxAncestors = 4
const maxServices = 3

/**
 * The names of the service at `base`: those that its API catalog lists first, or the default ones.
 *
 * @throws {CliError} when the whole address redirects, before the key is sent.
 */
export async function findServiceNames(connection: Connection, base: URL): Promise<ServiceNames> {
  const response = await connection.request(urlBelow(base, catalogPath), keyless)
  if (movedTo(response, catalogPath) !== undefined) throw redirectError(response, catalogPath)
  const services = readCatalog(response, base).filter((service) => service.base.href === base.href)
  return services[0]?.names ?? createServiceNames('service')
}

/** Looks for the service at `base` and above it. @returns The options of verify that find it. */
export async function findElsewhere(
  connection: Connection,
  base: URL,
  tried: ServiceNames,
): Promise<string | undefined> {
  const segments = base.pathname.split('/').filter(Boolean)
  const ancestors = Array.from(
    { length: Math.min(segments.length, maxAncestors) + 1 },
    (_, depth) => new URL(`/${segments.slice(0, segments.length - depth).join('/')}`, base),
  )
  for (const [depth, ancestor] of ancestors.entries()) {
    const catalog = await connection.request(urlBelow(ancestor, catalogPath), keyless).catch(() => undefined)
    const next = depth === 0 ? [] : namesOf(segments[segments.length - depth])
    const services = [
      ...catalog === undefined ? [] : readCatalog(catalog, ancestor),
      ...[...next, tried].map((names) => ({ base: ancestor, names })),
    ]
    for (const { base: { href }, names } of services.slice(0, maxServices)) {
      if (href === base.href && names.name === tried.name) continue
      if (!await isService(connection, { base: new URL(href), names })) continue
      const address = displayName(href.replace(/\/$/, ''))
      return `--url ${address}${names.name === 'service' ? '' : ` --service-name ${names.name}`}`
    }
  }
  return undefined
}

/** Services at this origin in an API catalog (RFC 9727): the key must not go to another one. */
function readCatalog({ status, text }: DeploymentResponse, base: URL): Location[] {
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
    // A service below a path that its proxy removes does not know that path.
    const at = prefix === '' ? base : new URL(prefix, base)
    return namesOf(name).map((names) => ({ base: at, names }))
  })
}

function namesOf(name: string | undefined): ServiceNames[] {
  return /^[a-z][a-z0-9-]{0,62}$/.test(name ?? '') ? [createServiceNames(name!)] : []
}

/** Every response of the service has its version; health is 200 or 503. */
async function isService(connection: Connection, { base, names }: Location): Promise<boolean> {
  const health = await connection.request(urlBelow(base, `/${names.name}/health`), keyless).catch(() =>
    undefined
  )
  return health?.header(names.versionHeader) !== undefined && health.status !== 404
}

/** The address that a redirect of `path` below an address leads to, when it keeps the path. */
function movedTo({ status, url, header }: DeploymentResponse, path: string): URL | undefined {
  const target = status >= 300 && status < 400 ? URL.parse(header('location') ?? '', url) : null
  if (!target?.pathname.endsWith(path)) return undefined
  // An address without a host, such as data:, has the origin null.
  return URL.parse(target.origin + target.pathname.slice(0, -path.length)) ?? undefined
}

/** @param path Of the request, below the address of the deployment. */
export function redirectError(response: DeploymentResponse, path: string): CliError {
  const { url, header } = response
  const location = header('location') ?? 'nowhere'
  const base = new URL(url.slice(0, -path.length))
  const moved = movedTo(response, path)
  const bare = ({ host, pathname }: URL) => host.replace(/^www\./, '') + pathname.replace(/\/$/, '')
  const step = moved !== undefined && moved.protocol === 'https:' && bare(moved) === bare(base)
    ? `Pass --url ${displayName(moved.href.replace(/\/$/, ''))}.`
    : URL.parse(location, url)?.href === `${url}/`
    ? 'Ask the operator to have the server in front of the service leave its paths as they are.'
    : 'If that is the right deployment, pass its address as --url.'
  const reason = 'verify does not follow redirects, which would send the key there.'
  return new CliError(3, 'redirected', `${url} redirects to ${displayName(location)}. ${reason} ${step}`)
}
