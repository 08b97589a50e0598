/** Responses that reuse parts of an earlier one equal new ones: headers of the same body, and the text of a key. */
import fc from 'fast-check'
import t from 'tap'
import { createPartnerApi } from '../../core/api.ts'
import { createResponseConverter } from '../../core/http/fetch.ts'
import type { EncodedText, HttpResponse } from '../../core/http/message.ts'
import { preparePrincipal } from '../../core/keys/principal.ts'
import { LIMIT_NAMES, policiesFor, type Policy } from '../../core/limits/policies.ts'
import { API_VERSION, type Key, MODULE_NAMES, MODULES, type Partner, SCOPES } from '../../core/model.ts'
import type { Grant } from '../../core/policy/decide.ts'
import type { HandlerContext } from '../../core/routes/route.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { verifyKey } from '../../core/routes/verify-key.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const { endpoints } = compileRoutes(ROUTES, 'service')
const checkKey = (verifyKey as unknown as {
  handle(
    input: { client(): string | undefined },
    grant: Grant,
    context: HandlerContext,
  ): { json: EncodedText }
}).handle

const internal: HttpResponse = { status: 500, headers: ['X-Request-Id', 'req_0'], body: '{}' }

/** A response that reuses nothing. */
function responseOf({ status, headers, body }: HttpResponse): Response {
  const pairs = Array.from({ length: headers.length / 2 }, (_, index): [string, string] => {
    return [headers[2 * index]!, headers[2 * index + 1]!]
  })
  return new Response(body as BodyInit | undefined ?? null, { status, headers: pairs })
}

async function contentOf(response: Response): Promise<unknown> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return [response.status, [...response.headers], Buffer.from(bytes).toString('hex')]
}

const cached = [
  { headers: ['Content-Type', 'application/json', 'ETag', '"a"'], body: Buffer.from('{"name":"Östra 👋"}') },
  {
    headers: ['Content-Type', 'text/html', 'ETag', '"b"', 'Link', '<?c>; rel="next"'],
    body: Buffer.from('<p>Grüße</p>'),
  },
  {
    headers: ['Content-Type', 'text/html', 'Content-Encoding', 'gzip'],
    body: Buffer.from([0x1f, 0x8b, 0xff]),
  },
]
const field = fc.tuple(
  fc.constantFrom('X-Request-Id', 'RateLimit', 'RateLimit-Policy'),
  fc.constantFrom('1', '2', '3'),
)
const answers = fc.record({
  kind: fc.nat(3),
  asksForHead: fc.boolean(),
  more: fc.uniqueArray(field, { selector: ([name]) => name, maxLength: 3 }),
}).map(({ kind, asksForHead, more }): HttpResponse => {
  const { headers, body } = cached[kind] ?? { headers: [], body: 'not cached' }
  return { status: 200, headers: [...headers, ...more.flat()], body: asksForHead ? undefined : body }
})

t.test('a reused response equals a new one, whatever preceded it', async (t) => {
  await t.resolves(fc.assert(fc.asyncProperty(fc.array(answers, { maxLength: 12 }), async (sequence) => {
    const respond = createResponseConverter(() => internal)
    for (const answer of sequence) {
      const [found, wanted] = [await contentOf(respond(answer)), await contentOf(responseOf(answer))]
      if (JSON.stringify(found) !== JSON.stringify(wanted)) {
        throw new Error(`${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`)
      }
    }
  })))
})

t.test('a field that the platform forbids is an error', async (t) => {
  const respond = createResponseConverter(() => internal)
  const body = Buffer.from('a')
  const answer = (id: string, limit: string): HttpResponse => {
    return {
      status: 200,
      headers: ['Content-Type', 'text/plain', 'ETag', '"a"', 'X-Request-Id', id, 'RateLimit', limit],
      body,
    }
  }
  for (const [id, limit] of [['1', '9'], ['2', 'a\r\nb'], ['1', '9'], ['3', '8']] as const) {
    const wanted = limit.includes('\r') ? internal : answer(id, limit)
    t.strictSame(await contentOf(respond(answer(id, limit))), await contentOf(responseOf(wanted)))
  }
  t.end()
})

t.test('at most 2,048 responses are cached', async (t) => {
  const { Response } = globalThis
  let made = 0
  globalThis.Response = class extends Response {
    constructor(body?: BodyInit | null, init?: ResponseInit) {
      super(body, init)
      // Those that are kept get their headers afterwards.
      if (init === undefined) made++
    }
  }
  t.teardown(() => globalThis.Response = Response)
  const respond = createResponseConverter(() => internal)
  const answers = Array.from({ length: 2_049 }, (_, index): HttpResponse => {
    const headers = ['Content-Type', 'text/plain', 'ETag', `"${index}"`, 'X-Request-Id', '1']
    return { status: 200, headers, body: Buffer.from('a') }
  })
  const [first] = answers as [HttpResponse]
  const last = answers.pop() as HttpResponse
  for (const answer of [...answers, first]) respond(answer)
  t.equal(made, 2_048, '2,048 responses are cached')
  for (const answer of [last, last, first]) {
    t.strictSame(await contentOf(respond(answer)), await contentOf(responseOf(answer)))
  }
  t.equal(made, 2_050, 'then the first was evicted')
})

const text = fc.string({ unit: 'binary' }).map((name) => name.toWellFormed())
const instant = fc.integer({ min: 0, max: 4_102_444_800_000 })
const someScopes = fc.subarray([...SCOPES])
const someModules = fc.subarray([...MODULE_NAMES])
const limit = fc.record({ quota: fc.integer({ min: 0, max: 1_000_000_000 }), windowSeconds: fc.nat(86_400) })
const keys = fc.record({
  id: fc.constantFrom('one', 'two'),
  name: text,
  environment: fc.constantFrom('live', 'test'),
  hint: text,
  scopes: someScopes,
  allow: fc.constant([]),
  createdAt: instant,
  expiresAt: fc.option(instant, { nil: undefined }),
  retiresAt: fc.option(instant, { nil: undefined }),
  successorId: fc.option(text, { nil: undefined }),
}) as fc.Arbitrary<unknown> as fc.Arbitrary<Key>
const partners = fc.record({
  slug: text,
  name: text,
  modules: someModules,
  selfService: fc.subarray(['rotate', 'revoke']),
}) as fc.Arbitrary<unknown> as fc.Arbitrary<Partner>

t.test('the text of a check of a key is the JSON of its members', (t) => {
  const input = {
    key: keys,
    partner: partners,
    service: fc.record({ key: limit, signup: limit, verify: limit, rotate: limit, authfail: limit }),
    states: fc.array(fc.record({ remaining: fc.nat(), resetSeconds: fc.nat() }), {
      minLength: LIMIT_NAMES.length,
      maxLength: LIMIT_NAMES.length,
    }),
    client: fc.option(fc.constant('192.0.2.1'), { nil: undefined }),
    instants: fc.array(instant, { minLength: 1, maxLength: 3 }),
    staleIfErrorMs: fc.constantFrom(0, 1500, 60_000),
    since: fc.option(instant, { nil: undefined }),
  }
  fc.assert(
    fc.property(fc.record(input), (given) => {
      const { key, partner, client, instants, staleIfErrorMs, since } = given
      const principal = preparePrincipal({ key, partner }, policiesFor(given.service))
      const states = Object.fromEntries(LIMIT_NAMES.map((name, index) => [name, given.states[index]!]))
      const asked: unknown[] = []
      const context = {
        endpoints,
        limiter: { peek: ({ name }: Policy, subject: string) => (asked.push([name, subject]), states[name]) },
        elapsed: () => 0,
        staleness: {
          maxStalenessMs: 250,
          staleIfErrorMs,
          staleWindow: () => since === undefined ? undefined : { since, until: 0 },
        },
      } as unknown as HandlerContext
      const shown = LIMIT_NAMES.flatMap((name) => principal.policies[name] ?? [])
        .filter(({ name }) => name !== 'authfail' || client !== undefined)
        .filter(({ name }) => name !== 'rotate' || partner.selfService.includes(name))
      // Again with the same principal, at another time.
      for (const now of instants) {
        const grant = { principal, partner, key, now }
        const data = {
          valid: true,
          partner: { slug: partner.slug, name: partner.name },
          key: {
            id: key.id,
            name: key.name,
            environment: key.environment,
            hint: `…${key.hint}`,
            created_at: new Date(key.createdAt).toISOString(),
            expires_at: key.expiresAt === undefined ? null : new Date(key.expiresAt).toISOString(),
            rotation: key.successorId === undefined || key.retiresAt === undefined
              ? null
              : { successor_id: key.successorId, retires_at: new Date(key.retiresAt).toISOString() },
          },
          scopes: SCOPES.filter((scope) => key.scopes.includes(scope)).map((scope) => ({
            scope,
            in_force: partner.modules.some((module) =>
              MODULES[module as keyof typeof MODULES].scope === scope
            ),
          })),
          modules: MODULE_NAMES.map((module) => {
            const [active, { scope }] = [partner.modules.includes(module), MODULES[module]]
            const held = key.scopes.includes(scope)
            return { module, active, ready: active && held, missing_scope: held ? null : scope }
          }),
          endpoints: endpoints.filter(({ scope }) => scope !== undefined).map(({ method, path, scope }) => ({
            method,
            path,
            scope,
            allowed: principal.heldScopes.has(scope!) && principal.activeScopes.has(scope!),
          })),
          limits: shown.map(({ name, quota, windowSeconds }) => ({
            policy: name,
            quota,
            window_seconds: windowSeconds,
            remaining: states[name]!.remaining,
            resets_in_seconds: states[name]!.resetSeconds,
          })),
          version: API_VERSION,
          checked_at: new Date(now).toISOString(),
          max_staleness_ms: 250,
          ...(staleIfErrorMs > 0 && {
            stale_if_error: {
              seconds: staleIfErrorMs / 1000,
              since: since === undefined ? null : new Date(since).toISOString(),
            },
          }),
        }
        asked.length = 0
        const { json } = checkKey({ client: () => client }, grant, context)
        const subjectOf: Partial<Record<string, string | undefined>> = {
          authfail: client,
          rotate: partner.slug,
        }
        const subjects = shown.map(({ name }) => [name, name in subjectOf ? subjectOf[name] : key.id])
        if (json.text !== JSON.stringify({ data })) return false
        if (json.utf8 !== Buffer.from(json.text).toString('latin1')) return false
        if (JSON.stringify(asked) !== JSON.stringify(subjects)) return false
      }
      return true
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('`instance` is a URI reference for any path, and a fragment in the target is 400', async (t) => {
  const api = createPartnerApi({ store: await openMemoryStore() })
  const send = async (target: string) => {
    const header = () => undefined
    const request = { method: 'GET', target, header, body: () => new Uint8Array(), address: undefined }
    return JSON.parse(String((await api.handle(request)).body))
  }
  const paths = {
    '/a"<b>|c^`{d}[e]\\ f': '/a%22%3Cb%3E%7Cc%5E%60%7Bd%7D%5Be%5D%5C%20f',
    '/%C3%A9%25': '/%C3%A9%25',
    '/é\ud800': '/%C3%A9%EF%BF%BD',
    '//a:b@c:d/e': '//a%3Ab%40c%3Ad/e',
    "/a:b@c;d=e,f+g$h&i!j*k'(l)~": "/a:b@c;d=e,f+g$h&i!j*k'(l)~",
  }
  for (const [path, instance] of Object.entries(paths)) {
    t.match(await send(`${path}?q`), { code: 'route_not_found', instance })
  }
  for (const target of ['/service/health#x', '/service/health?#', '/#', '#']) {
    t.match(await send(target), { code: 'malformed_request', instance: '/' }, target)
  }
})
