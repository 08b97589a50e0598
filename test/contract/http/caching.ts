/** Section 1, caching: a tag says that the bytes are the same, and is looked at last. */
import { expectProblem, keyedPaths } from './expect.ts'
import { before, get, type Heard, type Service, type Suite, type Tester, until } from './service.ts'

const vary = 'Authorization, X-Service-Partner-Key, Service-Version'

const maxStalenessMs = 200

export const caching: readonly Suite[] = [{
  tests: {
    'fields of a GET': fields,
    'If-None-Match': preconditions,
    'a cached response is only for those who may have it': apart,
  },
}, {
  changesContent: true,
  tests: {
    'a tag changes with the content and with nothing else': changes,
    'content that another connection changed': (t, service) => changedElsewhere(t, service, 0),
  },
}, {
  settings: { maxStalenessMs },
  tests: {
    'a profile falls due without a write': fallsDue,
    'content that another connection changed': (t, service) => changedElsewhere(t, service, maxStalenessMs),
  },
}]

function tagOf({ headers }: Heard): string {
  return headers.get('etag') ?? ''
}

async function fields(t: Tester, service: Service): Promise<void> {
  const tags = new Set<string>()
  for (const path of keyedPaths()) {
    const ask = (method: string) => get(service, `${path}?partner=demo`, { method })
    const first = await ask('GET')
    t.ok(/^"[\x21\x23-\x7e]+"$/.test(tagOf(first)), `a strong tag: ${path}`)
    t.equal(first.headers.get('cache-control'), 'private, no-cache', path)
    t.equal(first.headers.get('vary'), vary, path)
    t.equal(first.headers.get('content-length'), String(first.body.length), path)
    for (const method of ['GET', 'HEAD', 'GET']) {
      t.equal(tagOf(await ask(method)), tagOf(first), `${method} ${path}`)
    }
    tags.add(tagOf(first))
  }
  t.equal(tags.size, keyedPaths().length, 'other bytes, another tag')
  const [one, two] = [
    await get(service, '/public/profiles?partner=demo&limit=5'),
    await get(service, '/public/profiles?partner=demo&limit=6'),
  ]
  t.ok(tagOf(one) !== tagOf(two), 'another page, another tag')
  const sameBytes = await get(service, '/public/plans?partner=demo&')
  t.equal(tagOf(sameBytes), tagOf(await get(service, '/public/plans?partner=demo')), 'same bytes, same tag')
}

async function preconditions(t: Tester, service: Service): Promise<void> {
  for (const path of ['/public/profiles?partner=demo&limit=3', '/partner-widget?partner=demo']) {
    const whole = await get(service, path)
    const tag = tagOf(whole)
    const ask = (value: string, method = 'GET') =>
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
        const { status, body, headers } = await ask(value, method)
        t.strictSame([status, body.length], [304, 0], `${method} ${path} If-None-Match: ${value}`)
        // Those that a 200 would have had (RFC 9110 §15.4.5).
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
      const { status, text } = await ask(value)
      t.strictSame([status, text], [200, whole.text], `${path} If-None-Match: ${value}`)
    }
  }
  const since = await get(service, '/public/plans?partner=demo', {
    headers: { 'if-modified-since': 'Fri, 31 Dec 2100 23:59:59 GMT' },
  })
  t.equal(since.status, 200, 'there is no Last-Modified to compare with')
}

async function apart(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const paths = [
    '/public/profiles/for-acme?partner=acme',
    '/public/profiles?partner=acme&limit=100',
    '/partner-widget?partner=acme',
  ]
  for (const path of paths) {
    for (let round = 0; round < 2; round++) {
      t.equal((await get(service, path, { key: world.keys['acme full'] })).status, 200, `${path} is acme’s`)
      expectProblem(t, await get(service, path), 'partner_mismatch', 'and not demo’s')
    }
  }
  const plans = '/public/plans?partner=demo'
  t.equal((await get(service, plans)).status, 200)
  const scopeless = await get(service, plans, { key: world.keys['demo profiles'] })
  expectProblem(t, scopeless, 'scope_missing', 'a key without the scope is refused what another was given')
}

async function changes(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const path = '/public/profiles/bare?partner=demo'
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare') ?? {}
  const [before, plans] = [await get(service, path), await get(service, '/public/plans?partner=demo')]
  await world.publish('profiles', [{ ...line, headline: 'Another one' }])
  const after = await get(service, path, { headers: { 'if-none-match': tagOf(before) } })
  t.strictSame([after.status, after.json?.data?.headline], [200, 'Another one'], 'the old tag does not match')
  t.ok(tagOf(after) !== tagOf(before), 'under a new tag')
  const untouched = await get(service, '/public/plans?partner=demo', {
    headers: { 'if-none-match': tagOf(plans) },
  })
  t.equal(untouched.status, 304, 'bytes that stayed keep their tag')
  await world.partners.activate('kiosk', ['profiles'])
  const still = await get(service, path, { headers: { 'if-none-match': tagOf(after) } })
  t.equal(still.status, 304, 'facts of others change nothing')
  const name = async () => (await get(service, '/partner-widget?partner=demo')).json?.data?.partner?.name
  for (let time = 0; time < 3; time++) t.equal(await name(), 'Demo partner')
  await world.partners.update('demo', { name: 'Another name' })
  t.equal(await name(), 'Another name', 'but facts that are shown do')
}

async function fallsDue(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const lists = () => get(service, '/public/profiles/recent?partner=demo&limit=1')
  const ask = (slug: string) => get(service, `/public/profiles/${slug}?partner=demo`)
  const count = async (): Promise<number> =>
    (await get(service, '/public/industries?partner=demo&in_use=true')).json.data
      .find(({ slug }: { slug: string }) => slug === 'health').profile_count
  const line = { ...world.lines.profiles[0], name: 'Due', industry: 'health', visible_to: null }
  const { at: due, observed: { slug, unknown, listed, counted } } = await before(async (at, attempt) => {
    const [slug, known] = [`due-${attempt}`, `known-${attempt}`]
    await world.publish('profiles', [
      { ...line, slug, published_at: new Date(at).toISOString() },
      { ...line, slug: known, published_at: new Date(0).toISOString() },
    ])
    // The service knows of the one when it has the other.
    await until(() => get(service, `/public/profiles/${known}?partner=demo`), ({ status }) => status === 200)
    return { slug, unknown: await ask(slug), listed: await lists(), counted: await count() }
  })
  expectProblem(t, unknown, 'profile_not_found', 'before it is due')
  t.ok(!listed.text.includes(`"${slug}"`), 'nor is it in lists')
  // These responses are cached by now, and may be used only until the profile is due.
  const { heard, lastBefore } = await until(() => ask(slug), ({ status }) => status === 200, Date.now)
  t.ok(Date.now() >= due, 'it does not show early')
  t.ok(lastBefore < due, 'nor late')
  t.equal(heard.json.data.published_at, new Date(due).toISOString())
  const after = await lists()
  t.equal(after.json.data[0].slug, slug, 'the newest one is first at once')
  t.ok(tagOf(after) !== tagOf(listed), 'under another tag')
  t.equal(await count(), counted + 1, 'and counted')
}

async function changedElsewhere(t: Tester, service: Service, maxStalenessMs: number): Promise<void> {
  const { world } = service
  const ask = () => get(service, '/public/profiles/bare?partner=demo')
  const line = world.lines.profiles.find(({ slug }) => slug === 'bare') ?? {}
  for (const headline of ['Once', 'Twice', 'Three times']) {
    await ask()
    await world.publish('profiles', [{ ...line, headline }])
    const changed = performance.now()
    const { lastBefore } = await until(ask, ({ json }) => json.data.headline === headline)
    t.ok(lastBefore <= changed + maxStalenessMs, `${headline}: within ${maxStalenessMs} ms`)
    t.equal((await ask()).json.data.headline, headline, 'and from then on')
  }
}
