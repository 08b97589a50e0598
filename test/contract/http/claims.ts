/** Section 13: one-time links to keys. */
import { expectProblem } from './expect.ts'
import { get, type Service, type Suite, type TestContext, type TestResponse } from './service.ts'

export const claims: readonly Suite[] = [{
  tests: {
    'opening a link changes nothing, and its POST makes the key once': oneKey,
    'a link is a page for browsers, without a script of others': pages,
    'a link that gives no key is a page for browsers, which says what to do next': refusedPages,
    'a link of a rotation makes the successor when it is used': rotation,
    'a link of a rotation names the old key and its end': predecessor,
    'a link that was revoked, has expired or whose partner was removed is spent': spent,
    'a link whose key cannot be made stays open': notNow,
    'concurrent requests make one key': race,
    'the path of a link is exact, and appears nowhere': exactPath,
    'a body is ignored, and one that is too large uses no link': bodies,
    'checks come in the order of the contract': order,
  },
}, { settings: { limits: {} }, tests: { 'unknown links count as failed authentications': guesses } }]

const JSON_ONLY = { accept: 'application/json' }

function use(
  service: Service,
  path: string,
  headers: Record<string, string> = JSON_ONLY,
): Promise<TestResponse> {
  return service.send({ method: 'POST', target: service.root + path, headers })
}

function open(
  service: Service,
  path: string,
  headers: Record<string, string> = JSON_ONLY,
): Promise<TestResponse> {
  return service.send({ target: service.root + path, headers })
}

async function oneKey(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const { id, path } = await world.offer({ scopes: ['read:plans'], environment: 'test' })
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET']) {
    const { status } = await service.send({ method, target: service.root + path, headers: JSON_ONLY })
    t.equal(status, method === 'OPTIONS' ? 204 : 200, method)
  }
  const offer = await open(service, path)
  const { expires_at: end, ...data } = offer.json?.data ?? {}
  t.strictSame(data, { partner: 'demo', name: 'Offered', predecessor: null })
  t.ok(Date.parse(end) > Date.now(), 'the end of the link')
  const made = await use(service, path)
  t.equal(made.status, 201)
  for (const { headers } of [offer, made]) {
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('referrer-policy'), 'no-referrer')
  }
  const { key: text, ...key } = made.json?.data ?? {}
  t.strictSame(key, {
    id: text.slice(9, 21),
    hint: `…${text.slice(-4)}`,
    environment: 'test',
    scopes: ['read:plans'],
    expires_at: null,
    predecessor: null,
  })
  t.equal(
    (await get(service, '/public/plans?partner=demo', { key: { text } })).status,
    200,
    'the key works at once',
  )
  t.equal((await world.keyRing.show(key.id)).name, 'Offered')
  expectProblem(t, await use(service, path), 'claim_spent', 'again')
  expectProblem(t, await open(service, path), 'claim_spent', 'opened again', {
    instance: `${service.root}/claim/%E2%80%A6`,
  })
  const refused = await world.revokeClaim(id).catch(({ code }) => code)
  t.equal(refused, 'claim_spent', 'a used link is not revoked')
}

async function pages(t: TestContext, service: Service): Promise<void> {
  const { path } = await service.world.offer({ name: 'A <b> & "c"' })
  const browser = {
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    origin: 'null',
  }
  const page = await open(service, path, { ...browser, 'sec-fetch-site': 'cross-site' })
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.ok(page.text.includes('A &#60;b&#62; &#38; &#34;c&#34;'), 'the name is escaped')
  const policy = page.headers.get('content-security-policy') ?? ''
  t.ok(policy.startsWith("default-src 'none'") && policy.includes("form-action 'self'"), policy)
  t.ok(!policy.includes('unsafe') && !/https?:/.test(page.text), 'no other origin')
  for (
    const [accept, isJson] of [
      ['*/*', false],
      ['application/json;q=0.5, text/html', false],
      ['application/json, text/html;q=0.5', true],
      ['application/*', true],
    ] as const
  ) t.equal((await open(service, path, { accept })).json !== undefined, isJson, accept)
  expectProblem(t, await open(service, path, { accept: 'text/css' }), 'not_acceptable', 'neither')
  const headers = { ...browser, 'content-type': 'application/x-www-form-urlencoded' }
  const made = await service.send({ method: 'POST', target: service.root + path, headers, body: 'a=1' })
  t.equal(made.status, 201)
  const [, text = ''] = /<pre id="key"[^>]*>([^<]+)/.exec(made.text) ?? []
  t.equal(
    (await get(service, '/public/plans?partner=demo', { key: { text } })).status,
    200,
    'the page shows the key',
  )
}

async function refusedPages(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const used = await world.offer()
  t.equal((await use(service, used.path)).status, 201)
  const revoked = await world.offer()
  await world.revokeClaim(revoked.id)
  const expired = await world.offer({}, 1_000, Date.now() - 2_000)
  const spent = 'This link was used or revoked, or has expired. Ask the operator for another link.'
  const unknown = 'There is no such link. Check that the link is complete.'
  const links = [
    ...[used, revoked, expired].map(({ path }) => [path, 410, spent] as const),
    ...['a', 'a'.repeat(32)].map((token) => [`/claim/${token}`, 404, unknown] as const),
  ]
  for (const [path, status, text] of links) {
    for (const method of ['GET', 'POST']) {
      for (const accept of ['text/html,application/xhtml+xml,*/*;q=0.8', 'application/json, text/html']) {
        const response = await service.send({ method, target: service.root + path, headers: { accept } })
        t.equal(response.status, status, `${method} ${path}`)
        if (accept.startsWith('application/json')) {
          t.ok(response.json?.code.startsWith('claim_'), 'programs get the problem')
          continue
        }
        const { headers, text: page } = response
        t.equal(headers.get('content-type'), 'text/html; charset=utf-8')
        t.equal(headers.get('cache-control'), 'no-store')
        t.equal(headers.get('referrer-policy'), 'no-referrer')
        t.ok(headers.get('content-security-policy')?.includes("form-action 'none'"), 'a policy')
        t.ok(page.includes(text) && !page.includes('<form'), page)
        t.ok(page.includes(headers.get('x-request-id') ?? '?'), 'the request id')
        t.ok(!page.includes(path), 'the token is not repeated')
      }
    }
  }
  const old = await world.issue({})
  const late = await world.offer({ rotates: old.id })
  await world.keyRing.disable(old.id)
  const refused = await use(service, late.path, { accept: 'text/html' })
  t.equal(refused.status, 410)
  t.ok(
    /was not used\. Ask the operator about it\. *<\/p>/.test(refused.text),
    'and nothing that contradicts it',
  )
}

async function rotation(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const old = await world.issue({ scopes: ['read:plans'] })
  const { path } = await world.offer({ rotates: old.id, overlapMs: 0 })
  const plans = (key: { readonly text: string }) => get(service, '/public/plans?partner=demo', { key })
  t.equal((await plans(old)).status, 200, 'the old key works until the link is used')
  const { status, json } = await use(service, path)
  t.equal(status, 201)
  t.strictSame((await plans({ text: json?.data.key })).status, 200)
  expectProblem(t, await plans(old), 'key_expired', 'without an overlap')
  t.equal((await world.keyRing.show(old.id)).successorId, json?.data.id)
}

async function predecessor(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const { id } = await world.issue({})
  const { path } = await world.offer({ rotates: id })
  const before = (await open(service, path)).json?.data.predecessor
  t.equal(before.id, id)
  const hours = (Date.parse(before.ends_at) - Date.now()) / 3_600_000
  t.ok(hours > 23 && hours <= 24, 'the default overlap, from now')
  const html = { accept: 'text/html' }
  const offer = await open(service, path, html)
  t.ok(
    /<dd>\w{12}, which works until [-\d]{10} [:\d]{5} UTC if you make the key now<\/dd>/.test(offer.text),
    'the offer',
  )
  const expiring = await world.issue({ expiresAt: Date.now() + 3_600_000 })
  const { path: other } = await world.offer({ rotates: expiring.id }, 60_000)
  const made = (await use(service, other)).json?.data
  t.strictSame(made.predecessor, { id: expiring.id, ends_at: made.expires_at }, 'no later than it expires')
  const page = await use(service, path, html)
  const { retiresAt = 0 } = await world.keyRing.show(id)
  const [day, time = ''] = new Date(retiresAt).toISOString().split('T')
  t.ok(page.text.includes(`<dd>${id}, which works until ${day} ${time.slice(0, 5)} UTC</dd>`), 'the page')
}

async function spent(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  await world.partners.create({ slug: 'leaving', name: 'Leaving', modules: [] })
  const revoked = await world.offer()
  await world.revokeClaim(revoked.id)
  await world.revokeClaim(revoked.id)
  const expired = await world.offer({}, 1_000, Date.now() - 2_000)
  const removed = await world.offer({ partner: 'leaving' })
  await world.partners.remove('leaving')
  for (const [what, { path }] of Object.entries({ revoked, expired, removed })) {
    expectProblem(t, await open(service, path), 'claim_spent', what)
    expectProblem(t, await use(service, path), 'claim_spent', what)
  }
}

async function notNow(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const { id } = await world.issue({})
  const { path } = await world.offer({ rotates: id })
  await world.keyRing.disable(id)
  const refused = await use(service, path)
  expectProblem(t, refused, 'claim_spent', 'the key is disabled')
  t.ok(/was not used/.test(refused.json?.detail), refused.json?.detail)
  await world.keyRing.enable(id)
  t.equal((await use(service, path)).status, 201, 'once it is enabled')
  const other = await world.issue({})
  const late = await world.offer({ rotates: other.id })
  await world.keyRing.revoke(other.id)
  const { predecessor } = (await open(service, late.path)).json?.data ?? {}
  t.ok(Date.parse(predecessor.ends_at) <= Date.now(), 'a revoked key has ended')
  expectProblem(t, await use(service, late.path), 'claim_spent', 'the key is revoked')
}

async function race(t: TestContext, service: Service): Promise<void> {
  const { path } = await service.world.offer({ name: 'Raced' })
  const responses = await Promise.all(Array.from({ length: 50 }, () => use(service, path)))
  const made = responses.filter(({ status }) => status === 201)
  t.equal(made.length, 1, 'one request gets the key')
  t.equal(responses.filter(({ status }) => status === 410).length, 49, 'and the others 410')
  const names: string[] = []
  for await (const { name } of service.world.keyRing.list({ partner: 'demo' })) names.push(name)
  t.equal(names.filter((name) => name === 'Raced').length, 1)
}

async function exactPath(t: TestContext, service: Service): Promise<void> {
  const { root, send, quirks, world } = service
  const { path } = await world.offer()
  const token = path.slice('/claim/'.length)
  const targets = [
    `${root}${path}/`,
    `${root}/claim//${token}`,
    `${root}/Claim/${token}`,
    `${root}/cl%61im/${token}`,
    `${root}/claim%2F${token}`,
    `${root}/claim%252f${token}`,
    `${root}${path}/x`,
    `${root}/claims/${token}`,
    `${root}/claim%2525252F${token}`,
    `/${token.slice(0, 28)}`,
    `/x${root}${path}`,
    ...(quirks.has('resolves-targets') ? [] : [`${root}/claim/./${token}`, `${root}/x/../claim/${token}`]),
  ]
  for (const target of targets) {
    const response = await send({ method: 'POST', target, headers: JSON_ONLY })
    expectProblem(t, response, 'route_not_found', 'not the path of a link')
    t.equal(response.headers.get('referrer-policy'), 'no-referrer')
    t.ok(!decodeURIComponent(response.text).includes(token), 'the token is not echoed')
  }
  for (
    const wrong of [
      token.toLowerCase(),
      `${token}0`,
      token.slice(1),
      `%${token.charCodeAt(0).toString(16)}${token.slice(1)}`,
      'a',
    ]
  ) {
    const response = await use(service, `/claim/${wrong}`)
    expectProblem(t, response, 'claim_not_found', 'another token', { instance: `${root}/claim/%E2%80%A6` })
  }
  t.equal((await use(service, path)).status, 201)
}

async function bodies(t: TestContext, service: Service): Promise<void> {
  const { root, send, world } = service
  const { path } = await world.offer()
  const form = { ...JSON_ONLY, 'content-type': 'application/x-www-form-urlencoded' }
  const post = { method: 'POST', target: root + path, headers: form }
  for (const chunked of [false, true]) {
    for (const bytes of [32_769, 100_000]) {
      const response = await send({ ...post, body: 'a'.repeat(bytes), chunked })
      expectProblem(t, response, 'body_too_large', `${bytes} bytes, ${chunked ? 'in chunks' : 'declared'}`)
    }
  }
  t.equal((await send({ ...post, body: 'a'.repeat(32_768) })).status, 201)
}

async function order(t: TestContext, service: Service): Promise<void> {
  const { root, send, world } = service
  const { path } = await world.offer()
  const target = root + path
  const refused = await send({ method: 'PUT', target })
  expectProblem(t, refused, 'method_not_allowed', 'PUT')
  t.equal(refused.headers.get('allow'), 'GET, HEAD, POST, OPTIONS')
  t.equal(refused.headers.get('referrer-policy'), 'no-referrer')
  const body = 'a'.repeat(40_000)
  const post = { method: 'POST', target, body, headers: { accept: 'text/css' } }
  const headers = { 'service-version': '1', accept: 'text/css' }
  expectProblem(t, await send({ ...post, headers }), 'unknown_version', 'version')
  expectProblem(t, await send(post), 'not_acceptable', 'Accept')
  expectProblem(t, await use(service, '/claim/a', {}), 'claim_not_found', 'the token')
  t.equal(
    (await use(service, `${path}?utm_source=a&fbclid=b&fbclid=c`)).status,
    201,
    'mailers add parameters',
  )
}

async function guesses(t: TestContext, service: Service): Promise<void> {
  const { path } = await service.world.offer()
  for (let time = 0; time < 30; time++) {
    t.equal((await open(service, path)).status, 200, 'a right token never counts')
  }
  let unknown = 0
  for (let guess = 0; guess < 30; guess++) {
    const response = await open(service, `/claim/${String(guess).padStart(guess % 2 === 0 ? 32 : 5, 'a')}`)
    if (response.status === 429) {
      expectProblem(t, response, 'rate_limited', 'over the limit')
      t.ok(Number(response.headers.get('retry-after')) > 0, 'Retry-After')
    } else {
      expectProblem(t, response, 'claim_not_found', 'unknown')
      unknown++
    }
  }
  t.equal(unknown, 20, 'the default limit')
  expectProblem(t, await use(service, path), 'rate_limited', 'also for the right token')
  const page = await use(service, path, { accept: 'text/html' })
  t.equal(page.status, 429)
  const seconds = page.headers.get('retry-after') ?? '?'
  t.ok(page.text.includes(`Try again in ${seconds} seconds.`), page.text)
  const body = 'a'.repeat(40_000)
  const large = await service.send({ method: 'POST', target: `${service.root}${path}?a=1`, body })
  expectProblem(t, large, 'rate_limited', 'before the body')
}
