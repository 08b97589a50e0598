import { createRequestBuilder } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { DEFAULT_LIMITS, SERVICE_LIMITS } from '../../core/limits/policies.ts'
import type { Io } from '../output/print.ts'
import { isLoopback, parseKeyId } from '../verify/credential.ts'
import {
  type DeploymentResponse,
  displayName,
  NotThisServiceError,
  openConnection,
  urlBelow,
} from '../verify/deployment.ts'
import { readVerification, verifyKeyPath } from '../verify/response.ts'
import { type Check, findMany, findSkew, findStaleness, issue } from './check.ts'

/** @throws {CliError} when nothing, or something else, responds, or the service rejects the key. */
export async function checkDeployment(
  check: Check,
  base: URL,
  names: ServiceNames,
  env: Io['env'],
  trustedProxies: number,
  credential: { readonly key: string; readonly partner: string } | undefined,
): Promise<void> {
  const { origin } = base
  const connection = await openConnection(base, env)
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    connection.request({
      url: urlBelow(base, `/${names.name}${path}`),
      method: 'GET',
      headers: { accept: 'application/json', ...headers },
    })
  try {
    const health = await get('/health')
    checkHealth(check, base, names, health)
    // Only a note: the arguments of the running server are not known here.
    const proxy = trustedProxies === 0 ? health.header('via') ?? health.header('server') : undefined
    const place = `${origin} is behind ${displayName(proxy ?? '')}`
    const untrusted = issue(
      `${place}, and the settings of serve on this machine trust no proxy.`,
      'partner-api serve --trust-proxies 1',
    )
    check('deployment-proxies', proxy !== undefined && untrusted)

    // Browsers are refused before keys are read.
    const browser = await get('/public/plans', { origin: 'https://browser.example' })
    const message = `${origin} accepts requests from browsers, where anyone can read the key.`
    check('deployment-browsers', browser.status === 401 && issue(message, 'partner-api config show serve'))

    if (credential === undefined) return
    const { key, partner } = credential
    const build = createRequestBuilder(base, names.name, key)
    const response = await connection.request(build({ target: verifyKeyPath(names), body: { partner } }))
    const request = { ...credential, keyId: parseKeyId(key), names }
    const { limits, max_staleness_ms: ms, stale_if_error } = readVerification(response, request)
    // `rotate` is only listed for partners that may rotate keys.
    const off = SERVICE_LIMITS.filter((name) =>
      name !== 'rotate' && !limits.some(({ policy }) => policy === name)
    )
    const options = off.map((name) => `--limit ${name}=${Object.values(DEFAULT_LIMITS[name]).join('/')}`)
    const limitAgain = `partner-api serve ${options.join(' ')}`
    check('deployment-limits', findMany(`Limits that are off at ${origin}`, off, limitAgain))
    check('deployment-staleness', findStaleness(origin, ms + (stale_if_error?.seconds ?? 0) * 1_000))
  } finally {
    await connection.close()
  }
}

function checkHealth(check: Check, base: URL, names: ServiceNames, health: DeploymentResponse): void {
  const now = Date.now()
  const { origin, protocol, host } = base
  const isPlain = protocol === 'http:' && !isLoopback(base)
  check('deployment-https', isPlain && issue(`Keys are sent to ${origin} unencrypted.`, `https://${host}`))
  const body = parseJson(health.text)
  const data = isObject(body) && isObject(body['data']) ? body['data'] : body
  if (!isObject(data) || health.header(names.versionHeader) === undefined) {
    throw new NotThisServiceError(health.url, 'it has no health endpoint')
  }
  const status = `${health.status} ${displayName(String(data['status'] ?? data['code']))}`
  const failure = issue(`${origin} cannot read its store: ${status}.`, 'partner-api doctor')
  check('deployment-health', data['status'] !== 'ok' && failure)
  // The header has whole seconds.
  const ahead = now - Date.parse(health.header('date') ?? '')
  const skewMs = ahead < 0 ? ahead : Math.max(0, Math.round(ahead - health.ms - 1_000))
  check(
    'deployment-clock',
    findSkew('this machine', origin, skewMs, 2_000),
    findSkew(origin, 'its store', Number(data['clock_skew_ms'] ?? 0), 0),
  )
}
