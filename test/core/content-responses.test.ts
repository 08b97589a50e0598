/** Every record that the import accepts makes valid responses and an export that imports as the same record. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import { safeParse } from 'valibot'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { createPartnerApi } from '../../core/api.ts'
import { COUNTRY_CODES } from '../../core/content/iso-codes.ts'
import { createLineReader, formatContentLine, importContent } from '../../core/content/lines.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import type { ContentKind } from '../../core/ports/content.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'
import { anyText, anyUrl } from '../support/any-text.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { validatorFor } from '../support/openapi-schemas.ts'

const store = await openMemoryStore()
const actor = 'test'
const { slug: partner } = await createPartnerAdministration(store, { actor })
  .create({ slug: 'acme', name: 'Acme', modules: MODULE_NAMES })
const key = await createKeyAdministration(store, { actor }).issue({ partner, name: 'k', environment: 'live' })
const off = { quota: 0, windowSeconds: 60 }
const api = createPartnerApi({ store }, { maxStalenessMs: 0, limits: { key: off } })

async function read(path: string) {
  const response = await api.fetch(
    new Request(`https://api.example/service${path}`, { headers: { 'X-Service-Partner-Key': key.text } }),
  )
  return { status: response.status, body: await response.json() }
}

const { body: document } = await read('/openapi.json')
/** Creates a validator that lists the violations of a response. */
function createValidator(path: string): (body: unknown) => unknown[] {
  const { name } = ROUTES.find((route) => route.path === path.replace('{slug}', ':slug'))!
  const schema = document.paths[`/service${path}`].get.responses['200'].content['application/json'].schema
  return (body) => {
    const { issues = [] } = safeParse(RESPONSE_SCHEMAS[name as keyof typeof RESPONSE_SCHEMAS], body)
    return [
      ...issues.map(({ message, path }) => [message, path?.map(({ key }) => key)]),
      ...validatorFor(document)(schema, body),
    ]
  }
}

const text = (max: number) =>
  fc.oneof(
    anyText({ minLength: 1, maxLength: max }),
    fc.constantFrom('\u{1f600}'.repeat(max), ' ', '\u0001', '__proto__'),
  )
const slug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,79}$/)
const integer = (min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) =>
  fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max))
const url = fc.oneof(
  anyUrl,
  fc.stringMatching(/^https?:\/\/[!-~]{1,30}$/),
  fc.constantFrom(
    'HTTP://x',
    `https://a.example/${'x'.repeat(2_030)}`,
    'https://bücher.example/ä',
    'http://[::1]:1/',
  ),
)
const instant = (max: string) =>
  fc.date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date(max), noInvalidDate: true })
    .map((date) => date.toISOString())
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
const email = fc.oneof(
  fc.emailAddress(),
  fc.constantFrom('a@b', `${'a'.repeat(240)}@example.com`, "!#$%&'*@x.example"),
)

interface Case {
  readonly line: fc.Arbitrary<Readonly<Record<string, unknown>>>
  /** Endpoints that contain the record. */
  readonly paths: readonly string[]
}

const cases: Readonly<Record<ContentKind, Case>> = {
  industries: {
    line: fc.record({ slug, name: text(200), parent_slug: fc.constantFrom(null, 'home') }),
    paths: ['/public/industries', '/partner-widget'],
  },
  plans: {
    line: fc.record({
      slug,
      name: text(200),
      description: text(5_000),
      price: fc.record({
        amount_minor: integer(0),
        currency: fc.constantFrom('EUR', 'JPY', 'KWD', 'CLF', 'UYW'),
      }),
      interval: fc.constantFrom('month', 'year', 'once'),
      features: fc.array(text(200), { maxLength: 50 }),
      highlighted: fc.option(fc.boolean()),
      position: optional(integer()),
    }),
    paths: ['/public/plans', '/partner-widget'],
  },
  banners: {
    line: fc.record({
      partner: fc.constant(partner),
      title: text(200),
      body: optional(text(5_000)),
      image_url: optional(url),
      image_alt: optional(text(500)),
      link_url: optional(url),
      link_label: optional(text(200)),
      starts_at: optional(instant('2026-01-01T00:00:00Z')),
      ends_at: fc.constantFrom(null, '9999-12-31T23:59:59.999Z'),
    }),
    paths: ['/public/banner', '/partner-widget'],
  },
  profiles: {
    line: fc.record({
      slug,
      name: text(200),
      headline: text(300),
      country: fc.constantFrom(...COUNTRY_CODES),
      industry: fc.constant('home'),
      published_at: instant('2026-01-01T00:00:00Z'),
      logo_url: optional(url),
      description: optional(text(5_000)),
      website_url: optional(url),
      city: optional(text(200)),
      founded_year: optional(integer(1, 9_999)),
      employees: optional(fc.record({ min: optional(integer(0)), max: optional(integer(0)) })),
      tags: optional(fc.array(text(50), { maxLength: 20 })),
      contact: optional(fc.record({ email: optional(email), phone: optional(text(50)) })),
      links: optional(fc.array(fc.record({ rel: text(50), url }), { maxLength: 20 })),
      visible_to: fc.constantFrom(null, [partner]),
    }),
    paths: ['/public/profiles', '/public/profiles/recent', '/public/profiles/{slug}', '/partner-widget'],
  },
}

/** The record of a line; `undefined` for an invalid line. */
function parse(kind: ContentKind, line: string) {
  const reader = createLineReader(kind)
  const record = reader.read(line)
  return reader.finish() === undefined ? record : undefined
}

const options = { now: Date.now(), actor }
const home = JSON.stringify({ slug: 'home', name: 'Home' })

for (const kind of ['industries', 'plans', 'banners', 'profiles'] as const) {
  test(`every imported record of ${kind} makes valid responses and an equal export`, async (t) => {
    await importContent(store, 'industries', [home], options)
    const { line, paths } = cases[kind]
    const validators = paths.map((path) => ({ path, validate: createValidator(path) }))
    let imported = 0
    await fc.assert(
      fc.asyncProperty(line, async (line) => {
        const outcome = await importContent(store, kind, [JSON.stringify(line)], options)
        if ('errors' in outcome) return
        imported++
        const record = parse(kind, JSON.stringify(line))!
        const exported = formatContentLine(kind, record)
        if (!isDeepStrictEqual(parse(kind, exported), record)) throw new Error(`exported as ${exported}`)
        const slug = String(line['slug'])
        for (const { path, validate } of validators) {
          const { status, body } = await read(`${path.replace('{slug}', slug)}?partner=${partner}`)
          const violations = status === 200 ? validate(body) : [status]
          if (violations.length > 0) throw new Error(`${path}: ${JSON.stringify(violations)}`)
        }
        if (kind !== 'banners') await store.removeContent(kind, [slug], { actor, at: options.now })
        await importContent(store, 'industries', [home], options)
      }),
      { numRuns: 75 },
    )
    t.ok(imported > 10, `${imported} records`)
  })
}
