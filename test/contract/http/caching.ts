/** Section 1, caching: an entity tag identifies the bytes, and preconditions are evaluated last. */
import { expectProblem, keyedPaths } from './expect.ts'
import {
  before,
  get,
  type Service,
  type Suite,
  type TestContext,
  type TestResponse,
  until,
} from './service.ts'

const vary = 'Authorization, X-Service-Partner-Key, Service-Version'

const maxStalenessMs = 200

export const caching: readonly Suite[] = [{
  tests: {
    'GET responses carry a strong ETag, Vary and private caching': cacheHeaders,
    'If-None-Match with a current tag gets 304, and otherwise 200': preconditions,
    'a cached response is served only to keys that are authorized for it': cachedResponsesAreAuthorized,
  },
}, {
  changesContent: true,
  tests: {
    'a tag changes only when the bytes of the response change': tagChanges,
    'a change by another connection is served at once with a bound of 0': (t, service) =>
      changedByAnotherConnection(t, service, 0),
  },
}, {
  settings: { maxStalenessMs },
  tests: {
    'a profile appears at its publication instant without a write': publicationInstant,
    'a change by another connection is served within the bound': (t, service) =>
      changedByAnotherConnection(t, service, maxStalenessMs),
  },
}]

function tagOf({ headers }: TestResponse): string {
  return headers.get('etag') ?? ''
}

async function cacheHeaders(t: TestContext, service: Service): Promise<void> {
  const tags = new Set<string>()
  for (const path of keyedPaths()) {
    const request = (method: string) => get(service, `${path}?partner=demo`, { method })
    const first = await request('GET')
    t.ok(/^"[\x21\x23-\x7e]+"$/.test(tagOf(first)), `a strong tag: ${path}`)
    t.equal(first.headers.get('cache-control'), 'private, no-cache', path)
    t.equal(first.headers.get('vary'), vary, path)
    t.equal(first.headers.get('content-length'), String(first.body.length), path)
    for (const method of ['GET', 'HEAD', 'GET']) {
      t.equal(tagOf(await request(method)), tagOf(first), `${method} ${path}`)
    }
    tags.add(tagOf(first))
  }
  t.equal(tags.size, keyedPaths().length, 'different bytes have different tags')
  const one = await get(service, '/public/profiles?partner=demo&limit=5')
  const two = await get(service, '/public/profiles?partner=demo&limit=6')
  t.ok(tagOf(one) !== tagOf(two), 'different pages have different tags')
  const sameBytes = await get(service, '/public/plans?partner=demo&')
  t.equal(
    tagOf(sameBytes),
    tagOf(await get(service, '/public/plans?partner=demo')),
    'the same bytes have the same tag',
  )
}

async function preconditions(t: TestContext, service: Service): Promise<void> {
  for (const path of ['/public/profiles?partner=demo&limit=3', '/partner-widget?partner=demo']) {
    const full = await get(service, path)
    const tag = tagOf(full)
    const request = (value: string, method = 'GET') =>
      get(service, path, { method, headers: { 'if-none-match': value } })
    const matching = [
      tag,
      `W/${tag}`,
      '*',
      ` ${tag} `,
      `"other", ${tag}`,
      `"a,b",W/"c" , W/${tag},"d"`,
      `"",${tag}`,
    ]
    for (const value of matching) {
      for (const method of ['GET', 'HEAD']) {
        const { status, body, headers } = await request(value, method)
        t.strictSame([status, body.length], [304, 0], `${method} ${path} If-None-Match: ${value}`)
        // A 304 repeats the fields of the 200 (RFC 9110 §15.4.5).
        const found = ['etag', 'cache-control', 'vary', 'content-type'].map((name) => headers.get(name))
        t.strictSame(found, [tag, 'private, no-cache', vary, undefined], 'fields')
        t.ok(headers.has('ratelimit') && headers.has('ratelimit-policy'), 'the RateLimit fields')
      }
    }
    const others = [
      '"other"',
      tag.slice(1, -1),
      tag.slice(0, -2) + '"',
      `"x${tag.slice(1)}`,
      'W/"*"',
      '"*"',
      'x',
    ]
    for (const value of others) {
      const { status, text } = await request(value)
      t.strictSame([status, text], [200, full.text], `${path} If-None-Match: ${value}`)
    }
  }
  const since = await get(service, '/public/plans?partner=demo', {
    headers: { 'if-modified-since': 'Fri, 31 Dec 2100 23:59:59 GMT' },
  })
  t.equal(since.status, 200, 'If-Modified-Since is ignored: there is no Last-Modified')
}

async function cachedResponsesAreAuthorized(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const paths = [
    '/public/profiles/for-acme?partner=acme',
    '/public/profiles?partner=acme&limit=100',
    '/partner-widget?partner=acme',
  ]
  for (const path of paths) {
    for (let round = 0; round < 2; round++) {
      t.equal(
        (await get(service, path, { key: world.keys['acme full'] })).status,
        200,
        `${path} with acme’s key`,
      )
      expectProblem(t, await get(service, path), 'partner_mismatch', 'not with demo’s key')
    }
  }
  const plans = '/public/plans?partner=demo'
  t.equal((await get(service, plans)).status, 200)
  const scopeless = await get(service, plans, { key: world.keys['demo profiles'] })
  expectProblem(t, scopeless, 'scope_missing', 'a key without the scope is refused a cached response')
}

async function tagChanges(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const path = '/public/profiles/bare?partner=demo'
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare') ?? {}
  const before = await get(service, path)
  const plans = await get(service, '/public/plans?partner=demo')
  await world.publish('profiles', [{ ...line, headline: 'Another one' }])
  const after = await get(service, path, { headers: { 'if-none-match': tagOf(before) } })
  t.strictSame([after.status, after.json?.data?.headline], [200, 'Another one'], 'the old tag does not match')
  t.ok(tagOf(after) !== tagOf(before), 'the tag is new')
  const untouched = await get(service, '/public/plans?partner=demo', {
    headers: { 'if-none-match': tagOf(plans) },
  })
  t.equal(untouched.status, 304, 'unchanged bytes keep their tag')
  await world.partners.activate('kiosk', ['profiles'])
  const still = await get(service, path, { headers: { 'if-none-match': tagOf(after) } })
  t.equal(still.status, 304, 'a change of another partner keeps the tag')
  const name = async () => (await get(service, '/partner-widget?partner=demo')).json?.data?.partner?.name
  for (let time = 0; time < 3; time++) t.equal(await name(), 'Demo partner')
  await world.partners.update('demo', { name: 'Another name' })
  t.equal(await name(), 'Another name', 'a new partner name is served')
}

async function publicationInstant(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const lists = () => get(service, '/public/profiles/recent?partner=demo&limit=1')
  const request = (slug: string) => get(service, `/public/profiles/${slug}?partner=demo`)
  const industries = () => get(service, '/public/industries?partner=demo&in_use=true')
  const count = ({ json }: TestResponse): number =>
    json.data.find(({ slug }: { slug: string }) => slug === 'health').profile_count
  const line = { ...world.lines.profiles[0], name: 'Due', industry: 'health', visible_to: null }
  const { at: due, observed: { slug, unknown, listed, counted } } = await before(async (at, attempt) => {
    const slug = `due-${attempt}`
    // The second response is cached, until an instant that the import changes.
    for (let time = 0; time < 2; time++) await Promise.all([lists(), industries()])
    const counted = count(await industries()) + 1
    await world.publish('profiles', [
      { ...line, slug, published_at: new Date(at).toISOString() },
      { ...line, slug: `known-${attempt}`, published_at: new Date(0).toISOString() },
    ])
    // Both profiles were imported together: once one is counted, or both are, the service has them.
    await until(industries, (response) => count(response) >= counted)
    return { slug, unknown: await request(slug), listed: await lists(), counted }
  })
  expectProblem(t, unknown, 'profile_not_found', 'before it is due')
  t.ok(!listed.text.includes(`"${slug}"`), 'lists do not contain it before it is due')
  // The cached responses may be used only until the profile is due.
  const { response, lastBefore } = await until(() => request(slug), ({ status }) => status === 200, Date.now)
  t.ok(Date.now() >= due, 'the first 200 is not early')
  t.ok(lastBefore < due, 'the first 200 is not late')
  t.equal(response.json.data.published_at, new Date(due).toISOString())
  const after = await lists()
  t.equal(after.json.data[0].slug, slug, 'the newest profile is first in the list')
  t.ok(tagOf(after) !== tagOf(listed), 'the list has a new tag')
  t.equal(count(await industries()), counted + 1, 'the count includes it')
}

async function changedByAnotherConnection(
  t: TestContext,
  service: Service,
  maxStalenessMs: number,
): Promise<void> {
  const { world } = service
  const request = () => get(service, '/public/profiles/bare?partner=demo')
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare') ?? {}
  for (const headline of ['Once', 'Twice', 'Three times']) {
    await request()
    await world.publish('profiles', [{ ...line, headline }])
    const changed = performance.now()
    const { lastBefore } = await until(request, ({ json }) => json.data.headline === headline)
    t.ok(lastBefore <= changed + maxStalenessMs, `${headline}: within ${maxStalenessMs} ms`)
    t.equal((await request()).json.data.headline, headline, 'the next response has it too')
  }
}
