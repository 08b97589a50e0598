/** Serves a page with the widget, and the widget alone for searches. The key stays here. */
import { readFileSync } from 'node:fs'

function fail(reason) {
  console.error(`${reason}: README.md says how to start.`)
  process.exit(1)
}

const packages = ['@hono/node-server', 'hono', 'partner-api-client'].map((name) => import(name))
const [{ serve }, { Hono }, { createPartnerClient, PartnerProblem }] = await Promise.all(packages)
  .catch(({ message }) => fail(message))
if (!process.env.PARTNER_API_KEY) fail('PARTNER_API_KEY is not set')

const client = createPartnerClient({
  url: process.env.PARTNER_API_URL ?? 'https://api.example',
  key: process.env.PARTNER_API_KEY,
  partner: process.env.PARTNER_API_PARTNER ?? 'demo',
  // A visitor waits for the page.
  timeoutMs: 3000,
  retries: 1,
  maxRetryAfterSeconds: 1,
})
const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8')
const [page, template] = [read('page.html'), read('partner-widget.html')]

const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src https:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'strict-origin-when-cross-origin',
}
/** What a visitor may ask for, with the longest text of each. Nothing else reaches the service. */
const parameters = { q: 100, country: 2, industry: 100, cursor: 2000 }
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#039;' }
const escape = (value) => String(value).replace(/[&<>"']/g, (character) => entities[character])
const tags = /{{([#^])([\w.]+)}}(.*?){{\/\2}}|{{ *([\w.]+) *}}/gs

/** The member of a template. Links of an operator's own tables are not checked by the service: some are `javascript:`. */
function valueOf(data, name) {
  const value = name.split('.').reduce((object, member) => object?.[member], data)
  return name.endsWith('_url') && !/^https?:\/\//i.test(value) ? undefined : value
}

/** Fills a template: `{{name}}` is escaped; `{{#name}}` repeats for the items of a list; `{{^name}}` is for none. */
function fill(template, data) {
  return template.replace(tags, (_, kind, section, inner, name) => {
    const items = [valueOf(data, section ?? name)].flat().filter((item) => item || item === 0)
    if (kind === '^') return items.length > 0 ? '' : fill(inner, data)
    const draw = (item) => kind ? fill(inner, { ...data, text: item, ...Object(item) }) : escape(item)
    return items.map(draw).join('')
  })
}

const card = (profile) => ({ ...profile, initial: [...profile.name][0] })

async function readWidget(query) {
  const widget = await client.widget()
  const choices = (list, id, chosen) => list.map((item) => ({ ...item, selected: item[id] === chosen }))
  const price = ({ price: { amount_minor, exponent, currency }, interval }) => {
    const digits = amount_minor % 10 ** exponent ? exponent : 0
    const format = { minimumFractionDigits: digits, maximumFractionDigits: digits }
    const amount = (amount_minor / 10 ** exponent).toLocaleString('en', format)
    return { amount, currency, term: interval === 'once' ? 'once' : `per ${interval}` }
  }
  return {
    ...widget,
    profiles: widget.profiles.map(card),
    countries: choices(widget.countries, 'code', query.country),
    industries: choices(widget.industries, 'slug', query.industry),
    plans: widget.plans.map((plan) => ({ ...plan, ...price(plan) })),
  }
}

async function search(query) {
  const { data, page: { next_cursor: cursor } } = await client.profiles({ ...query, limit: 12 })
  const next = Object.entries({ ...query, cursor }).map(([name, value]) => [`partner_${name}`, value])
  const more = cursor && `?${new URLSearchParams(next)}`
  return { profiles: data.map(card), more, [data.length > 0 ? 'found' : 'none']: true }
}

/** What a call returns, or how it ended. */
async function attempt(call, query) {
  try {
    return await call(query)
  } catch (error) {
    if (error instanceof PartnerProblem && error.status === 400) return { invalid: true }
    console.error(String(error))
    return { failed: true }
  }
}

/** The widget; or only what a search has found, for a page that shows the rest already. */
async function draw({ searchParams }, isPart) {
  const values = Object.keys(parameters).map((name) => [name, searchParams.get(`partner_${name}`)?.trim()])
  const query = Object.fromEntries(values.filter(([, value]) => value))
  const isSearch = Object.keys(query).length > 0
  const isInvalid = Object.entries(query).some(([name, value]) => value.length > parameters[name])
  const [widget, found] = await Promise.all([
    isPart && isSearch ? undefined : attempt(readWidget, query),
    isInvalid ? { invalid: true } : isSearch ? attempt(search, query) : undefined,
  ])
  const shown = widget?.failed ? widget : found ?? { ...widget, newest: true }
  return {
    html: fill(template, {
      src: '/partner-widget',
      query,
      widget: widget?.failed ? undefined : widget,
      ...shown,
    }),
    status: shown.failed ? 503 : shown.invalid ? 400 : 200,
    // Every visitor gets the same: a cache in front of this server saves time and quota.
    headers: { ...headers, 'Cache-Control': shown.failed ? 'no-store' : 'public, max-age=60' },
  }
}

const app = new Hono()
app.get('/', async (context) => {
  const { html, headers } = await draw(new URL(context.req.url))
  return context.html(page.replace('<!-- widget -->', () => html), 200, headers)
})
app.get('/partner-widget', async (context) => {
  const { html, status, headers } = await draw(new URL(context.req.url), true)
  return context.html(html, status, headers)
})
for (const [name, type] of [['partner-widget.js', 'text/javascript'], ['partner-widget.css', 'text/css']]) {
  const text = read(name)
  app.get(
    `/${name}`,
    (context) => context.body(text, 200, { ...headers, 'Content-Type': `${type}; charset=utf-8` }),
  )
}
const address = { hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }
serve({ fetch: app.fetch, ...address }, () => console.log('ready'))
