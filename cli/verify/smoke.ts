import type { RequestSpec } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import type { Page } from '../../core/http/message.ts'
import { parseJson } from '../../core/lib/json.ts'
import { SLUG_PATTERN } from '../../core/lib/text.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import type { KeyedRoute } from '../../core/routes/route.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'
import type { Verification } from '../../core/wire.ts'
import { CliError } from '../errors.ts'
import type { Deployment, DeploymentResponse } from './deployment.ts'
import { checkCommonHeaders, checkResponse, type Expectation, problemCode, shortExcerpt } from './response.ts'

export interface SmokeResult {
  readonly method: string
  readonly path: string
  readonly scope: string
  readonly status: number | null
  /** Milliseconds of the first response. */
  readonly ms: number | null
  /** `not_allowed`: the key may not use the endpoint, so it was not called. */
  readonly verdict: 'ok' | 'failed' | 'unreachable' | 'not_allowed' | 'skipped'
  /** Errors, the reason for skipping the endpoint, or remarks. */
  readonly reasons: readonly string[]
}

interface SmokeContext {
  readonly deployment: Deployment
  readonly verification: Verification
  readonly names: ServiceNames
  readonly route: KeyedRoute
  readonly expected: Expectation
  /** The complete path, with `{slug}` for a parameter. */
  readonly path: string
  /** One profile of each list that was tested before. */
  readonly slugs: string[]
}

type SmokeOutcome = Pick<SmokeResult, 'status' | 'ms' | 'verdict' | 'reasons'>

/** Endpoints that may have no content, and the problem that they answer with then. */
const emptyCodes: Readonly<Record<string, string>> = { banner: 'banner_not_found' }

/**
 * Calls every endpoint that the key may use and checks the responses against the contract. Endpoints that are not in
 * this program's route table are skipped.
 */
export async function runSmokeTests(
  deployment: Deployment,
  verification: Verification,
  names: ServiceNames,
  withSignup: boolean,
  progress: (done: number, total: number) => void,
): Promise<SmokeResult[]> {
  const { endpoints } = compileRoutes(ROUTES, names.name)
  const slugs: string[] = []
  const results: SmokeResult[] = []
  let limitError: CliError | undefined
  const limited: Deployment = {
    async send(spec) {
      const response = await deployment.send(spec)
      if (problemCode(response) !== 'rate_limited') return response
      const seconds = shortExcerpt(response.header('retry-after') ?? 'some')
      throw limitError = new CliError(
        1,
        'rate_limited',
        `its rate limit is exceeded: try again in ${seconds} seconds`,
      )
    },
  }
  const listed = new Map(
    verification.endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]),
  )
  for (const { method, path, scope, allowed } of listed.values()) {
    progress(results.length, listed.size)
    const index = endpoints.findIndex((known) => known.method === method && known.path === path)
    const route = ROUTES[index]
    const outcome = !allowed
      ? skippedOutcome('not_allowed', [`it needs ${scope}, held and in force`])
      : limitError !== undefined
      ? skippedOutcome('skipped', ['the rate limit was exceeded before'])
      : route?.access !== 'key'
      ? skippedOutcome('skipped', ['this program does not know it: is the deployment newer?'])
      : await callRoute({ deployment: limited, verification, names, route, path, slugs }, withSignup)
    results.push({ method, path, scope, ...outcome })
  }
  return results
}

async function callRoute(
  given: Omit<SmokeContext, 'expected'>,
  withSignup: boolean,
): Promise<SmokeOutcome> {
  const { route, names, verification: { limits, version } } = given
  const expected: Expectation = {
    status: route.status ?? 200,
    bodySchema: RESPONSE_SCHEMAS[route.name],
    names,
    version,
    policies: route.limits.filter((name) => limits.some(({ policy }) => policy === name)),
  }
  const context = { ...given, expected }
  try {
    return context.route.method === 'POST' ? await callSignup(context, withSignup) : await callRead(context)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return skippedOutcome(error.code === 'unreachable' ? 'unreachable' : 'failed', [error.message])
  }
}

async function callRead(context: SmokeContext): Promise<SmokeOutcome> {
  const { deployment, route, expected, slugs } = context
  const [slug] = slugs
  if (context.path.includes('{slug}') && slug === undefined) {
    return skippedOutcome('skipped', ['no list has returned a profile to request'])
  }
  const path = context.path.replace('{slug}', encodeURIComponent(slug ?? ''))
  const target = `${path}?${new URLSearchParams(queryFor(context))}`
  const first = await deployment.send({ target })
  const emptyCode = emptyCodes[route.name]
  if (first.status === 404 && emptyCode !== undefined && problemCode(first) === emptyCode) {
    return calledOutcome(first, [], [`it has none now (${emptyCode})`])
  }
  const errors = checkResponse(first, expected)
  // The first error may cause others.
  if (errors.length === 0) errors.push(...await checkRevalidation(context, target, first))
  if (errors.length === 0 && 'cursor' in route.parameters) {
    errors.push(...await checkNextPage(context, path, first))
  }
  if (errors.length === 0 && route.scope === 'read:profiles') {
    const listed = listedSlugs(first)
    const invalidSlug = listed.find((slug) => !SLUG_PATTERN.test(slug))
    slugs.push(...listed.filter((slug) => SLUG_PATTERN.test(slug)).slice(0, 1))
    if (invalidSlug !== undefined) {
      errors.push(`it returns a profile whose slug is ${shortExcerpt(invalidSlug)}`)
    }
  }
  return calledOutcome(first, errors)
}

function listedSlugs({ text }: DeploymentResponse): string[] {
  // Valid against the schema: every row has a slug.
  const { data } = parseJson(text) as { data: unknown }
  return Array.isArray(data) ? data.map(({ slug }) => slug) : []
}

/** Short pages, so that most lists have a second one, and only complete days, whose counts are final. */
function queryFor({ route: { parameters }, verification }: SmokeContext): Record<string, string> {
  const now = Date.parse(verification.checked_at)
  const day = (ago: number) => utcDay(now - ago * MS_PER_DAY)
  return {
    partner: verification.partner.slug,
    ...('cursor' in parameters && { limit: '2' }),
    ...('from' in parameters && 'to' in parameters && { from: day(7), to: day(1) }),
  }
}

/** Repeats a request with `If-None-Match`. Content may change in between, but not every time. */
async function checkRevalidation(
  { deployment, expected }: SmokeContext,
  target: string,
  first: DeploymentResponse,
): Promise<string[]> {
  let knownEtag = first.header('etag') ?? ''
  for (let turn = 0; turn < 3; turn++) {
    const response = await deployment.send({ target, headers: { 'if-none-match': knownEtag } })
    const etag = response.header('etag')
    if (response.status === 304) {
      const errors = checkCommonHeaders(response, expected).map((sentence) => `on its 304, ${sentence}`)
      if (etag !== knownEtag) errors.push('its 304 has another ETag than the one it confirms')
      return response.text === '' ? errors : [...errors, 'its 304 has a body']
    }
    if (response.status !== 200 || etag === undefined || etag === knownEtag) {
      return [`it answered If-None-Match with ${response.status} and not 304`]
    }
    knownEtag = etag
  }
  return ['its ETag changes with every response']
}

interface PageBody {
  readonly data: readonly { readonly slug?: string; readonly id?: string }[]
  readonly page: Page
}

/** Follows `Link` to the next page, which must not repeat rows of the first one. */
async function checkNextPage(
  { deployment, expected }: SmokeContext,
  path: string,
  first: DeploymentResponse,
): Promise<string[]> {
  // Valid against the schema.
  const { data, page } = parseJson(first.text) as PageBody
  const link = first.header('link')
  if (!page.has_more) {
    return page.next_cursor === null && link === undefined ? [] : ['its last page links to another one']
  }
  const [, reference] = /^<([^>]*)>; rel="next"$/.exec(link ?? '') ?? []
  if (reference === undefined) return ['it has more pages but no Link to the next one']
  const next = URL.parse(reference, new URL(path, 'http://here.invalid'))
  // The request carries the key.
  if (next?.host !== 'here.invalid' || next.pathname !== path) {
    return [`its Link leads elsewhere: ${shortExcerpt(reference)}`]
  }
  if (next.searchParams.get('cursor') !== page.next_cursor) return ['its Link does not have the next_cursor']
  const second = await deployment.send({ target: `${path}${next.search}` })
  const errors = checkResponse(second, expected)
  if (errors.length > 0) return errors.map((sentence) => `on its second page, ${sentence}`)
  const seen = new Set(data.map(({ slug, id }) => slug ?? id))
  const repeated = (parseJson(second.text) as PageBody).data.some(({ slug, id }) => seen.has(slug ?? id))
  return repeated ? ['its second page repeats a row of the first'] : []
}

async function callSignup(
  { deployment, verification, route, path, expected }: SmokeContext,
  withSignup: boolean,
): Promise<SmokeOutcome> {
  if (route.name !== 'sign-up') {
    return skippedOutcome('skipped', ['of the endpoints that write, only signups are tested'])
  }
  const isTest = verification.key.environment === 'test'
  if (!withSignup) {
    return skippedOutcome('skipped', [
      isTest ? 'to make a signup, pass --with-signup' : 'to make a signup, pass --with-signup and a test key',
    ])
  }
  if (!isTest) {
    return skippedOutcome('failed', ['not called: --with-signup needs a test key, and this one is live'])
  }
  const request: RequestSpec = {
    target: path,
    headers: { 'idempotency-key': `smoke-${crypto.randomUUID()}` },
    // RFC 2606 §3: a reserved domain.
    body: {
      partner: verification.partner.slug,
      email: 'smoke-test@example.com',
      name: 'Smoke Test',
      message: 'Made by partner-api verify --smoke --with-signup.',
    },
  }
  const first = await deployment.send(request)
  const errors = checkResponse(first, expected)
  if (errors.length > 0) return calledOutcome(first, errors)
  const replay = await deployment.send(request)
  errors.push(...checkResponse(replay, expected).map((sentence) => `on repetition, ${sentence}`))
  if (errors.length === 0 && replay.text !== first.text) {
    errors.push('on repetition, its response differs')
  }
  if (errors.length === 0 && replay.header('idempotent-replayed') !== 'true') {
    errors.push('on repetition, it lacks Idempotent-Replayed: true')
  }
  const { data } = parseJson(first.text) as { data: { id: string } }
  return calledOutcome(first, errors, [`it made ${shortExcerpt(data.id)}`])
}

function calledOutcome(
  { status, ms }: DeploymentResponse,
  errors: readonly string[],
  remarks: readonly string[] = [],
): SmokeOutcome {
  return {
    status,
    ms: Math.round(ms * 10) / 10,
    verdict: errors.length === 0 ? 'ok' : 'failed',
    reasons: errors.length === 0 ? remarks : [...errors, ...remarks],
  }
}

function skippedOutcome(verdict: SmokeResult['verdict'], reasons: readonly string[]): SmokeOutcome {
  return { status: null, ms: null, verdict, reasons }
}
