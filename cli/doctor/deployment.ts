import { createRequestBuilder } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES } from '../../core/limits/policies.ts'
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
import { type Check, findMany, findSkew, findStaleness } from './check.ts'

/**
 * @param trustedProxies By the settings of `serve`.
 * @param credential A key, and the partner that owns it.
 * @throws {CliError} when nothing, or something else, responds, or the service rejects the key.
 */
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
    const message = `${origin} is behind ${
      displayName(proxy ?? '')
    }, and the settings of serve trust no proxy.`
    check(
      'deployment-proxies',
      proxy !== undefined && { message, command: 'partner-api serve --trust-proxies 1' },
    )

    // Browsers are refused before keys are read.
    const browser = await get('/public/plans', { origin: 'https://browser.example' })
    check(
      'deployment-browsers',
      browser.status === 401 && {
        message: `${origin} answers browsers, where everybody can read a key.`,
        command: 'partner-api config show serve',
      },
    )

    if (credential === undefined) return
    const { key, partner } = credential
    const build = createRequestBuilder(base, names.name, key)
    const response = await connection.request(build({ target: verifyKeyPath(names), body: { partner } }))
    const { limits, max_staleness_ms: ms, stale_if_error: { seconds = 0 } = {} } = readVerification(
      response,
      { ...credential, keyId: parseKeyId(key), names },
    )
    const off = LIMIT_NAMES.filter((name) => !limits.some(({ policy }) => policy === name))
    const options = off.map((name) => `--limit ${name}=${Object.values(DEFAULT_LIMITS[name]).join('/')}`)
    check(
      'deployment-limits',
      findMany(`Limits that are off at ${origin}`, off, `partner-api serve ${options.join(' ')}`),
    )
    check('deployment-staleness', findStaleness(origin, ms + seconds * 1_000))
  } finally {
    await connection.close()
  }
}

function checkHealth(check: Check, base: URL, names: ServiceNames, health: DeploymentResponse): void {
  const now = Date.now()
  const { origin, protocol, host } = base
  check(
    'deployment-https',
    protocol === 'http:' && !isLoopback(base) &&
      { message: `Keys travel to ${origin} unencrypted.`, command: `https://${host}` },
  )
  const body = parseJson(health.text)
  const data = isObject(body) && isObject(body['data']) ? body['data'] : body
  if (!isObject(data) || health.header(names.versionHeader) === undefined) {
    throw new NotThisServiceError(health.url, 'it reports no health')
  }
  const status = `${health.status} ${displayName(String(data['status'] ?? data['code']))}`
  check(
    'deployment-health',
    data['status'] !== 'ok' &&
      { message: `${origin} cannot read its store: ${status}.`, command: 'partner-api doctor' },
  )
  // The header has whole seconds.
  const ahead = now - Date.parse(health.header('date') ?? '')
  const skewMs = ahead < 0 ? ahead : Math.max(0, Math.round(ahead - health.ms - 1_000))
  check(
    'deployment-clock',
    findSkew('this machine', origin, skewMs, 2_000),
    findSkew(origin, 'its store', Number(data['clock_skew_ms'] ?? 0), 0),
  )
}
