import { SLUG_PATTERN } from '../../core/content/slug.ts'
import { REPLIES } from '../../core/replies/table.ts'
import type { KeyedRoute } from '../../core/routes/route.ts'
import { compileRoutes } from '../../core/routes/router.ts'
import { ROUTES } from '../../core/routes/table.ts'
import type { ServiceNames } from '../../core/service-names.ts'
import type { Page } from '../../core/wire.ts'
import { Failure } from '../failure.ts'
import type { Asked } from '../../adapters/client/request.ts'
import type { Deployment, Reply } from './ask.ts'
import { type Expectation, judge, judgeFields, problemCode, sayable } from './judge.ts'
import { parseJson, type Verification } from './read.ts'

/** What came of one endpoint. */
export interface Trial {
  readonly method: string
  readonly path: string
  readonly scope: string | null
  readonly status: number | null
  /** Milliseconds that the first answer took. */
  readonly ms: number | null
  /** `not_allowed`: the key may not use it, so it was not called. */
  readonly verdict: 'ok' | 'failed' | 'unreachable' | 'not_allowed' | 'skipped'
  /** What is wrong, why it was not called, or what is worth to know. */
  readonly reasons: readonly string[]
}

/** What the trial of one endpoint needs. */
interface Trying {
  readonly deployment: Deployment
  readonly verification: Verification
  readonly route: KeyedRoute
  readonly expected: Expectation
  /** Complete, `{slug}` for a parameter. */
  readonly path: string
  /** The profiles that lists have shown, one of each list. */
  readonly slugs: string[]
}

type Finding = Pick<Trial, 'status' | 'ms' | 'verdict' | 'reasons'>

/** Endpoints that may have nothing to show, and the problem that says so. */
const emptyCodes: Readonly<Record<string, string>> = { banner: 'banner_not_found' }

const dayMs = 86_400_000

/**
 * Calls every endpoint that verify-key says the key may use, one after the other, and holds each answer against the
 * route table of this program. What the deployment names is called only when the table has it.
 *
 * @param withSignup Make one signup, with a test key.
 * @param progress Called before each endpoint.
 */
export async function smoke(
  deployment: Deployment,
  verification: Verification,
  names: ServiceNames,
  withSignup: boolean,
  progress: (done: number, total: number) => void,
): Promise<Trial[]> {
  const { endpoints } = compileRoutes(ROUTES, names.name)
  const slugs: string[] = []
  const trials: Trial[] = []
  for (const { method, path, scope, allowed } of verification.endpoints) {
    progress(trials.length, verification.endpoints.length)
    const index = endpoints.findIndex((known) => known.method === method && known.path === path)
    const route = ROUTES[index]
    const finding = !allowed
      ? uncalled('not_allowed', scope === null ? [] : [`it needs ${scope}, held and in force`])
      : route?.access !== 'key'
      ? uncalled('skipped', ['this program does not know it: is the deployment newer?'])
      : await tryRoute({
        deployment,
        verification,
        route,
        path,
        slugs,
        expected: {
          status: route.status ?? 200,
          reply: REPLIES[route.name],
          names,
          version: verification.version,
          policies: route.limits.filter((name) => verification.limits.some(({ policy }) => policy === name)),
        },
      }, withSignup)
    trials.push({ method, path, scope, ...finding })
  }
  return trials
}

async function tryRoute(trying: Trying, withSignup: boolean): Promise<Finding> {
  try {
    return trying.route.method === 'POST' ? await trySignup(trying, withSignup) : await tryReading(trying)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return uncalled(error.code === 'unreachable' ? 'unreachable' : 'failed', [error.message])
  }
}

async function tryReading(trying: Trying): Promise<Finding> {
  const { deployment, route, expected, slugs } = trying
  const [slug] = slugs
  if (trying.path.includes('{slug}') && slug === undefined) {
    return uncalled('skipped', ['no list has shown a profile to ask for'])
  }
  const path = trying.path.replace('{slug}', encodeURIComponent(slug ?? ''))
  const target = `${path}?${new URLSearchParams(queryFor(trying))}`
  const first = await deployment.ask({ target })
  const emptyCode = emptyCodes[route.name]
  if (first.status === 404 && emptyCode !== undefined && problemCode(first) === emptyCode) {
    return found(first, [], [`it has none now (${emptyCode})`])
  }
  const wrong = judge(first, expected)
  // An answer that is wrong already says nothing about the next one.
  if (wrong.length === 0) wrong.push(...await askAgain(trying, target, first))
  if (wrong.length === 0 && 'cursor' in route.parameters) wrong.push(...await turnPage(trying, path, first))
  if (wrong.length === 0 && route.scope === 'read:profiles') {
    const shown = slugsIn(first)
    const strange = shown.find((slug) => !SLUG_PATTERN.test(slug))
    slugs.push(...shown.filter((slug) => SLUG_PATTERN.test(slug)).slice(0, 1))
    if (strange !== undefined) wrong.push(`it shows a profile whose slug is ${sayable(strange)}`)
  }
  return found(first, wrong)
}

/** Slugs of the profiles that a list shows; none for an answer that is no list. */
function slugsIn({ text }: Reply): string[] {
  // Judged before: rows have a slug, which is text.
  const { data } = parseJson(text) as { data: unknown }
  return Array.isArray(data) ? data.map(({ slug }) => slug) : []
}

/** Few rows, so that most lists have a second page, and no day that goes on changing. */
function queryFor({ route: { parameters }, verification }: Trying): Record<string, string> {
  const now = Date.parse(verification.checked_at)
  const day = (ago: number) => new Date(now - ago * dayMs).toISOString().slice(0, 10)
  return {
    partner: verification.partner.slug,
    ...('cursor' in parameters && { limit: '2' }),
    ...('from' in parameters && 'to' in parameters && { from: day(7), to: day(1) }),
  }
}

/** Asks for what is known already: 304, unless it changes at every turn. */
async function askAgain(
  { deployment, expected }: Trying,
  target: string,
  first: Reply,
): Promise<string[]> {
  let known = first.header('etag') ?? ''
  for (let turn = 0; turn < 3; turn++) {
    const again = await deployment.ask({ target, headers: { 'if-none-match': known } })
    const etag = again.header('etag')
    if (again.status === 304) {
      const wrong = judgeFields(again, expected).map((sentence) => `on its 304, ${sentence}`)
      if (etag !== known) wrong.push('its 304 has not the ETag that it confirms')
      return again.text === '' ? wrong : [...wrong, 'its 304 has a body']
    }
    if (again.status !== 200 || etag === undefined || etag === known) {
      return [`it answered If-None-Match with ${again.status} and not 304`]
    }
    // It was changed meanwhile.
    known = etag
  }
  return ['its ETag changes with every answer']
}

interface PageBody {
  readonly data: readonly { readonly slug?: string; readonly id?: string }[]
  readonly page: Page
}

/** Follows `Link` to the next page, which has to be another part of the same list. */
async function turnPage({ deployment, expected }: Trying, path: string, first: Reply): Promise<string[]> {
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
    return [`its Link leads elsewhere: ${sayable(reference)}`]
  }
  if (next.searchParams.get('cursor') !== page.next_cursor) return ['its Link has not the next_cursor']
  const second = await deployment.ask({ target: `${path}${next.search}` })
  const wrong = judge(second, expected)
  if (wrong.length > 0) return wrong.map((sentence) => `on its second page, ${sentence}`)
  const seen = new Set(data.map(({ slug, id }) => slug ?? id))
  const repeated = (parseJson(second.text) as PageBody).data.some(({ slug, id }) => seen.has(slug ?? id))
  return repeated ? ['its second page repeats a row of the first'] : []
}

async function trySignup(
  { deployment, verification, route, path, expected }: Trying,
  wanted: boolean,
): Promise<Finding> {
  if (route.name !== 'sign-up') return uncalled('skipped', ['only signups are tried among what writes'])
  const isTest = verification.key.environment === 'test'
  if (!wanted) {
    return uncalled('skipped', [
      isTest
        ? 'a signup is made with --with-signup only'
        : 'a signup is made with --with-signup and a test key only',
    ])
  }
  if (!isTest) return uncalled('failed', ['not called: --with-signup takes a test key, and this one is live'])
  const question: Asked = {
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
  const first = await deployment.ask(question)
  const wrong = judge(first, expected)
  if (wrong.length > 0) return found(first, wrong)
  const again = await deployment.ask(question)
  wrong.push(...judge(again, expected).map((sentence) => `asked again, ${sentence}`))
  if (wrong.length === 0 && again.text !== first.text) wrong.push('asked again, it answered something else')
  if (wrong.length === 0 && again.header('idempotent-replayed') !== 'true') {
    wrong.push('asked again, it did not say Idempotent-Replayed: true')
  }
  const { data } = parseJson(first.text) as { data: { id: string } }
  return found(first, wrong, [`it made ${sayable(data.id)}`])
}

function found({ status, ms }: Reply, wrong: readonly string[], remarks: readonly string[] = []): Finding {
  return {
    status,
    ms: Math.round(ms * 10) / 10,
    verdict: wrong.length === 0 ? 'ok' : 'failed',
    reasons: wrong.length === 0 ? remarks : [...wrong, ...remarks],
  }
}

function uncalled(verdict: Trial['verdict'], reasons: readonly string[]): Finding {
  return { status: null, ms: null, verdict, reasons }
}
