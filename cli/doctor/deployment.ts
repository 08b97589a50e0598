/** Checks of a running service, by HTTP. */
import { API_VERSION, type ServiceNames } from '../../core/http/headers.ts'
import { isObject, parseJson } from '../../core/lib/json.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES } from '../../core/limits/policies.ts'
import type { Verification } from '../../core/wire.ts'
import { type CliError, toCliError } from '../errors.ts'
import type { Io } from '../output/print.ts'
import { isLoopback, parseKeyId } from '../verification/credential.ts'
import {
  createDeployment,
  type DeploymentResponse,
  notThisServiceError,
  openConnection,
  urlBelow,
} from '../verification/deployment.ts'
import { readVerification, verifyKeyPath } from '../verification/response.ts'
import { type Checks, error, type Finding, findMany, findSkew, findStaleness, warning } from './check.ts'

interface DeploymentContext {
  readonly base: URL
  readonly version: string | undefined
  readonly health: DeploymentResponse & { readonly data: Readonly<Record<string, unknown>> }
  /** When the response of `health` had arrived, milliseconds since the epoch. */
  readonly now: number
  /** The response to a request of a browser without a key. */
  readonly browser: DeploymentResponse
  readonly verification: Verification | CliError | undefined
}

/** A key, and the partner that owns it. */
export interface Credential {
  readonly key: string
  readonly partner: string
}

export const DEPLOYMENT_CHECKS: Checks<DeploymentContext> = {
  'deployment-health': ({ base, health: { status, data } }) =>
    data['status'] !== 'ok' &&
    error(
      `${base.origin} cannot read its store: ${status} ${data['status'] ?? data['code']}.`,
      'partner-api doctor',
    ),

  'deployment-clock'({ base, health, now }) {
    // The header has whole seconds.
    const ahead = now - Date.parse(health.header('date') ?? '')
    const skewMs = ahead < 0 ? ahead : Math.max(0, Math.round(ahead - health.ms - 1_000))
    return [
      ...findSkew('this machine', base.origin, skewMs || 0, 2_000),
      ...findSkew(base.origin, 'its store', Number(health.data['clock_skew_ms'] ?? 0), 0),
    ]
  },

  'deployment-https': ({ base }) =>
    base.protocol === 'http:' && !isLoopback(base) &&
    error(`Keys travel to ${base.origin} unencrypted.`, `https://${base.host}`),

  'deployment-version': ({ base, version }) =>
    version !== API_VERSION &&
    warning(
      `${base.origin} has version ${version}, and this program ${API_VERSION}.`,
      'npm install --global partner-api',
    ),

  'deployment-browsers': ({ base, browser: { status } }) =>
    status !== 403 &&
    warning(`${base.origin} answers browsers, where everybody can read a key.`, 'partner-api serve'),

  'deployment-key': ({ verification }) => verification instanceof Error && error(verification.message),

  'deployment-limits'({ base, verification }) {
    if (verification === undefined || verification instanceof Error) return skipped
    const names = LIMIT_NAMES.filter((name) => !verification.limits.some(({ policy }) => policy === name))
    const options = names.map((name) => `--limit ${name}=${Object.values(DEFAULT_LIMITS[name]).join('/')}`)
    const command = `partner-api serve ${options.join(' ')}`
    return findMany({ severity: 'warning', what: `Limits that are off at ${base.origin}`, names, command })
  },

  'deployment-staleness'({ base, verification }) {
    if (verification === undefined || verification instanceof Error) return skipped
    const { max_staleness_ms: ms, stale_if_error: { seconds = 0 } = {} } = verification
    return findStaleness(base.origin, ms + seconds * 1_000)
  },
}

const skipped: Finding = {
  severity: 'skipped',
  message: 'It needs a key of the store: --key-file or PARTNER_API_KEY.',
}

/** Sends the requests whose responses the checks judge. @throws {CliError} when nothing, or something else, responds. */
export async function readDeployment(
  base: URL,
  names: ServiceNames,
  env: Io['env'],
  credential: Credential | undefined,
): Promise<DeploymentContext> {
  const connection = await openConnection(base, env)
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    connection.request(urlBelow(base, `/${names.name}${path}`), {
      method: 'GET',
      headers: { accept: 'application/json', ...headers },
    })
  try {
    const health = await get('/health')
    const now = Date.now()
    const body = parseJson(health.text)
    const data = isObject(body) && isObject(body['data']) ? body['data'] : body
    const version = health.header(names.versionHeader)
    if (!isObject(data) || version === undefined) {
      throw notThisServiceError(health.url, 'it reports no health')
    }
    const browser = await get('/public/plans', { origin: 'https://browser.example' })
    const verification = credential && await createDeployment(connection, base, names, credential.key)
      .send({ target: verifyKeyPath(names), body: { partner: credential.partner } })
      .then((response) =>
        readVerification(response, { ...credential, keyId: parseKeyId(credential.key), names })
      ).catch(toCliError)
    return { base, version, health: { ...health, data }, now, browser, verification }
  } finally {
    await connection.close()
  }
}
