/**
 * A partner's client, written with nothing but the types that openapi-typescript made of the document: it reads
 * every endpoint, and prints what it saw. `node client.ts BASE PARTNER`, the key in PARTNER_API_KEY.
 */
import createClient from 'openapi-fetch'
import type { components, paths } from './wire.d.ts'

const [baseUrl = '', partner = ''] = process.argv.slice(2)
const client = createClient<paths>({
  baseUrl,
  headers: { 'X-Service-Partner-Key': process.env['PARTNER_API_KEY'] ?? '' },
})
const seen: Record<string, unknown> = {}

/** What went well, or the problem as it is typed: every endpoint has the same. */
function dataOf<T>(result: { data?: T; error?: components['schemas']['Problem'] }): T {
  if (result.error !== undefined) throw new Error(`${result.error.code} (${result.error.request_id})`)
  if (result.data === undefined) throw new Error('Neither data nor a problem.')
  return result.data
}

const query = { partner }

const { data: verified } = dataOf(
  await client.POST('/service/developer/verify-key', { body: { partner } }),
)
const ready: boolean = verified.modules.every((module) => module.active && module.ready)
const environment: 'live' | 'test' = verified.key.environment
seen['verify-key'] = [verified.valid, ready, environment, verified.limits.length]

const widget = dataOf(await client.GET('/service/partner-widget', { params: { query } })).data
seen['widget'] = [widget.partner.slug, widget.banner?.title ?? null, widget.profiles.length]

const recent = dataOf(
  await client.GET('/service/public/profiles/recent', { params: { query: { partner, limit: 3 } } }),
).data
const newest: components['schemas']['ProfileCard'] | undefined = recent[0]
seen['recent'] = [recent.length, newest?.country.code]

let pages = 0
let rows = 0
for (let cursor: string | undefined, more = true; more; pages++) {
  const page = dataOf(
    await client.GET('/service/public/profiles', {
      params: {
        query: { ...query, sort: '-published_at', limit: 40, ...(cursor !== undefined && { cursor }) },
      },
    }),
  )
  rows += page.data.length
  cursor = page.page.next_cursor ?? undefined
  more = page.page.has_more
}
const some = dataOf(
  await client.GET('/service/public/profiles', {
    params: { query: { ...query, country: ['DE', 'FR'], industry: ['culture'] } },
  }),
)
seen['directory'] = [pages, rows, some.data.every(({ country: { code } }) => code === 'DE' || code === 'FR')]

const profile = dataOf(
  await client.GET('/service/public/profiles/{slug}', {
    params: { path: { slug: newest?.slug ?? '' }, query },
  }),
).data
seen['detail'] = [profile.slug === newest?.slug, profile.tags.length, profile.employees?.min ?? null]

const banner = dataOf(await client.GET('/service/public/banner', { params: { query } })).data
seen['banner'] = banner.ends_at

const countries = dataOf(
  await client.GET('/service/public/countries', {
    params: { query: { ...query, in_use: true, locale: 'de' } },
  }),
).data
seen['countries'] = countries.reduce((sum, { profile_count }) => sum + profile_count, 0)

const industries = dataOf(
  await client.GET('/service/public/industries', { params: { query: { ...query, in_use: false } } }),
).data
seen['industries'] = industries.filter(({ parent_slug }) => parent_slug === null).length

const plans = dataOf(await client.GET('/service/public/plans', { params: { query } })).data
const prices: number[] = plans.map(({ price }) => price.amount_minor / 10 ** price.exponent)
seen['plans'] = [plans.length, Math.max(...prices)]

const signup = await client.POST('/service/partner/signups', {
  params: { header: { 'Idempotency-Key': crypto.randomUUID() } },
  body: { partner, email: 'jane@example.com', name: 'Jane Doe', country: 'DE', metadata: { a: 'b' } },
})
const receipt = dataOf(signup).data
seen['signups'] = [signup.response.status, receipt.status]

const summary = dataOf(await client.GET('/service/partner/reports/summary', { params: { query } })).data
seen['summary'] = summary.daily.length

const activity = dataOf(
  await client.GET('/service/partner/reports/activity', {
    params: { query: { ...query, type: ['signup.created', 'key.issued'] } },
  }),
)
seen['activity'] = activity.data.map((row) =>
  row.type === 'signup.created' ? row.subject.email : row.type === 'key.issued' ? row.subject.hint.length : null
).slice(0, 2)

const health: 'ok' | 'stale' = dataOf(await client.GET('/service/health')).data.status
seen['health'] = health
seen['openapi'] = dataOf(await client.GET('/service/openapi.json')).openapi
seen['docs'] = dataOf(await client.GET('/service/docs', { parseAs: 'text' })).startsWith('<!doctype html>')
const endpoint = { params: { path: { endpoint: 'signUp' } }, parseAs: 'text' } as const
const markdown = [
  dataOf(await client.GET('/service/docs.md', { parseAs: 'text' })),
  dataOf(await client.GET('/service/docs/{endpoint}.md', endpoint)),
]
seen['markdown'] = markdown.map((text) => text.split('\n', 1)[0])
seen['catalog'] = dataOf(await client.GET('/.well-known/api-catalog')).linkset.length

const refused = await client.GET('/service/public/banner', { params: { query: { partner: 'nobody' } } })
seen['refused'] = [refused.response.status, refused.error?.code]

// @ts-expect-error -- what the service refuses does not compile
client.GET('/service/public/industries', { params: { query: { partner, in_use: 'yes' } } }).catch(() => {})
// @ts-expect-error -- nor does a request without a partner
client.GET('/service/public/plans', {}).catch(() => {})

console.log(JSON.stringify(seen))
