import type { RequestSpec } from '../../adapters/client/transport.ts'
import type { ServiceNames } from '../../core/http/headers.ts'
import type { Page } from '../../core/http/message.ts'
import { SLUG_PATTERN } from '../../core/lib/text.ts'
import { MS_PER_DAY, utcDay } from '../../core/lib/time.ts'
import type { KeyedRoute } from '../../core/routes/route.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'
import { CliError } from '../errors.ts'
import type { Deployment, DeploymentResponse } from './deployment.ts'
import {
  checkCommonFields,
  checkResponse,
  type Expectation,
  parseJson,
  problemCode,
  shortExcerpt,
  type SmokeResult,
  type Verification,
} from './response.ts'

/** What the trial of one endpoint needs. */
interface SmokeContext {
  readonly deployment: Deployment
  readonly verification: Verification
  readonly route: KeyedRoute
  readonly expected: Expectation
  /** Complete, `{slug}` for a parameter. */
  readonly path: string
  /** The profiles that lists have shown, one of each list. */
  readonly slugs: string[]
}

type SmokeOutcome = Pick<SmokeResult, 'status' | 'ms' | 'verdict' | 'reasons'>

/** Endpoints that may have nothing to show, and the problem that says so. */
const emptyCodes: Readonly<Record<string, string>> = { banner: 'banner_not_found' }

/**
 * Calls every endpoint that verify-key says the key may use, one after the other, and holds each answer against the
 * route table of this program. What the deployment names is called only when the table has it.
 *
 * @param withSignup Make one signup, with a test key.
 * @param progress Called before each endpoint.
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
  for (const { method, path, scope, allowed } of verification.endpoints) {
    progress(results.length, verification.endpoints.length)
    const index = endpoints.findIndex((known) => known.method === method && known.path === path)
    const route = ROUTES[index]
    const outcome = !allowed
      ? skippedOutcome('not_allowed', scope === null ? [] : [`it needs ${scope}, held and in force`])
      : route?.access !== 'key'
      ? skippedOutcome('skipped', ['this program does not know it: is the deployment newer?'])
      : await callRoute({
        deployment,
        verification,
        route,
        path,
        slugs,
        expected: {
          status: route.status ?? 200,
          bodySchema: RESPONSE_SCHEMAS[route.name],
          names,
          version: verification.version,
          policies: route.limits.filter((name) => verification.limits.some(({ policy }) => policy === name)),
        },
      }, withSignup)
    results.push({ method, path, scope, ...outcome })
  }
  return results
}

async function callRoute(context: SmokeContext, withSignup: boolean): Promise<SmokeOutcome> {
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
    return skippedOutcome('skipped', ['no list has shown a profile to ask for'])
  }
  const path = context.path.replace('{slug}', encodeURIComponent(slug ?? ''))
  const target = `${path}?${new URLSearchParams(queryFor(context))}`
  const first = await deployment.send({ target })
  const emptyCode = emptyCodes[route.name]
  if (first.status === 404 && emptyCode !== undefined && problemCode(first) === emptyCode) {
    return calledOutcome(first, [], [`it has none now (${emptyCode})`])
  }
  const errors = checkResponse(first, expected)
  // An answer that is wrong already says nothing about the next one.
  if (errors.length === 0) errors.push(...await checkRevalidation(context, target, first))
  if (errors.length === 0 && 'cursor' in route.parameters) {
    errors.push(...await checkNextPage(context, path, first))
  }
  if (errors.length === 0 && route.scope === 'read:profiles') {
    const listed = listedSlugs(first)
    const invalidSlug = listed.find((slug) => !SLUG_PATTERN.test(slug))
    slugs.push(...listed.filter((slug) => SLUG_PATTERN.test(slug)).slice(0, 1))
    if (invalidSlug !== undefined) {
      errors.push(`it shows a profile whose slug is ${shortExcerpt(invalidSlug)}`)
    }
  }
  return calledOutcome(first, errors)
}

/** Slugs of the profiles that a list shows; none for an answer that is no list. */
function listedSlugs({ text }: DeploymentResponse): string[] {
  // Judged before: rows have a slug, which is text.
  const { data } = parseJson(text) as { data: unknown }
  return Array.isArray(data) ? data.map(({ slug }) => slug) : []
}

/** Few rows, so that most lists have a second page, and no day that goes on changing. */
function queryFor({ route: { parameters }, verification }: SmokeContext): Record<string, string> {
  const now = Date.parse(verification.checked_at)
  const day = (ago: number) => utcDay(now - ago * MS_PER_DAY)
  return {
    partner: verification.partner.slug,
    ...('cursor' in parameters && { limit: '2' }),
    ...('from' in parameters && 'to' in parameters && { from: day(7), to: day(1) }),
  }
}

/** Asks for what is known already: 304, unless it changes at every turn. */
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
      const errors = checkCommonFields(response, expected).map((sentence) => `on its 304, ${sentence}`)
      if (etag !== knownEtag) errors.push('its 304 has not the ETag that it confirms')
      return response.text === '' ? errors : [...errors, 'its 304 has a body']
    }
    if (response.status !== 200 || etag === undefined || etag === knownEtag) {
      return [`it answered If-None-Match with ${response.status} and not 304`]
    }
    // It was changed meanwhile.
    knownEtag = etag
  }
  return ['its ETag changes with every answer']
}

interface PageBody {
  readonly data: readonly { readonly slug?: string; readonly id?: string }[]
  readonly page: Page
}

/** Follows `Link` to the next page, which has to be another part of the same list. */
async function checkNextPage(
  { deployment, expected }: SmokeContext,
  path: string,
  first: DeploymentResponse,
): Promise<string[]> {
  // Judged before: it has this form.
  const { data, page } = parseJson(first.text) as PageBody
  const link = first.header('link')
  if (!page.has_more) {
    return page.next_cursor === null && link === undefined ? [] : ['its last page leads to another one']
  }
  const [, reference] = /^<([^>]*)>; rel="next"$/.exec(link ?? '') ?? []
  if (reference === undefined) return ['it has more pages and no Link to the next']
  const next = URL.parse(reference, new URL(path, 'http://here.invalid'))
  // The key goes nowhere else.
  if (next?.host !== 'here.invalid' || next.pathname !== path) {
    return [`its Link leads elsewhere: ${shortExcerpt(reference)}`]
  }
  if (next.searchParams.get('cursor') !== page.next_cursor) return ['its Link has not the next_cursor']
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
  if (route.name !== 'sign-up') return skippedOutcome('skipped', ['only signups are tried among what writes'])
  const isTest = verification.key.environment === 'test'
  if (!withSignup) {
    return skippedOutcome('skipped', [
      isTest
        ? 'a signup is made with --with-signup only'
        : 'a signup is made with --with-signup and a test key only',
    ])
  }
  if (!isTest) {
    return skippedOutcome('failed', ['not called: --with-signup takes a test key, and this one is live'])
  }
  const request: RequestSpec = {
    target: path,
    headers: { 'idempotency-key': `smoke-${crypto.randomUUID()}` },
    // A domain that nobody has (RFC 2606 §3).
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
  errors.push(...checkResponse(replay, expected).map((sentence) => `asked again, ${sentence}`))
  if (errors.length === 0 && replay.text !== first.text) {
    errors.push('asked again, it answered something else')
  }
  if (errors.length === 0 && replay.header('idempotent-replayed') !== 'true') {
    errors.push('asked again, it did not say Idempotent-Replayed: true')
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
