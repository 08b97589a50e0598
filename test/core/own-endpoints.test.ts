/** Endpoints of the host's own (contract, section 12). */
import t from 'tap'
import * as v from 'valibot'
import { createPartnerApi } from '../../core/api.ts'
import { createModuleAdministration } from '../../core/admin/modules.ts'
import { Problem } from '../../core/http/problem.ts'
import type { LogEvent } from '../../core/log.ts'
import type { Store } from '../../core/ports/store.ts'
import { defineEndpoint, type OwnEndpoint } from '../../core/routes/host-endpoints.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { serveStore } from '../support/partner-service.ts'
import { validatorFor } from '../support/openapi-schemas.ts'

interface Order {
  readonly id: string
  readonly state: string
}

/** How often handlers ran. */
let calls = 0
let orders: Order[] = []
let revision = '1'

const states = v.picklist(['open', 'closed'])
const order = v.object({ id: v.string(), state: states })

const READ = { method: 'GET', scope: 'read:orders', summary: 'Read' } as const
const CREATE = { method: 'POST', scope: 'create:orders', summary: 'Create' } as const

const listOrders = defineEndpoint({
  name: 'orders',
  method: 'GET',
  path: '/orders',
  scope: 'read:orders',
  summary: 'List orders',
  query: { state: v.optional(v.array(states)), from: v.optional(v.pipe(v.number(), v.integer()), 0) },
  paging: { limit: 2, maximum: 3 },
  response: v.array(order),
  handle({ query: { state, from }, page }) {
    calls++
    return page({
      read: (after, limit) =>
        orders.filter(({ id }) => Number(id) >= from && (after === undefined || id > after[1]))
          .filter((each) => !state?.length || state.includes(each.state as 'open')).slice(0, limit),
      positionOf: ({ id }) => [id, id],
    })
  },
})

const showOrder = defineEndpoint({
  name: 'order',
  method: 'GET',
  path: '/orders/:id/:part',
  scope: 'read:orders',
  summary: 'Get an order',
  description: 'One order, or a part of it.',
  query: { verbose: v.optional(v.boolean()), shop: v.string() },
  revision: () => revision,
  handle({ params: { id, part }, query: { verbose, shop } }, { partner, key }) {
    calls++
    return {
      data: {
        id,
        part,
        verbose: verbose ?? null,
        shop,
        partner: partner.slug,
        revision,
        kind: key.environment,
      },
    }
  },
})

const createOrder = defineEndpoint({
  name: 'order-create',
  ...CREATE,
  path: '/orders',
  body: {
    item: v.pipe(v.string(), v.maxLength(5)),
    count: v.optional(v.number(), 1),
    tags: v.optional(v.array(v.string())),
  },
  takesIdempotencyKey: true,
  status: 201,
  handle({ body: { tags, ...body }, idempotencyKey }, { key }) {
    calls++
    return {
      data: {
        ...body,
        tags: tags ?? [],
        idempotency_key: idempotencyKey ?? null,
        by: key.id,
        digest: 'digest' in key,
      },
    }
  },
})

/** What the handler of `/trouble` does. */
let trouble: () => unknown = () => ({ data: 1 })
const troubled = defineEndpoint({
  name: 'trouble',
  ...READ,
  path: '/trouble',
  handle: () => trouble() as { data: unknown },
})

const definitions: readonly OwnEndpoint[] = [listOrders, showOrder, createOrder, troubled]

async function serveOrders(options: PartnerApiOptions = {}) {
  const store = await openMemoryStore()
  const modules = createModuleAdministration(store, { actor: 'test' })
  await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  await modules.define({ name: 'ordering', scope: 'create:orders', feature: 'New orders' })
  const service = await serveStore(store, { endpoints: definitions, ...options })
  const { partners, issue } = service.world
  for (const slug of ['demo', 'acme']) await partners.activate(slug, ['orders', 'ordering'])
  const key = await issue({ partner: 'demo' })
  calls = 0
  return { ...service, key, other: await issue({ partner: 'acme' }) }
}

t.test('the link to the next page is one for every reading of relative references', async (t) => {
  const log = defineEndpoint({
    name: 'log',
    ...READ,
    path: '/log/:name',
    paging: { limit: 1, maximum: 1 },
    handle: ({ params: { name }, page }) =>
      page({
        read: (after) => [1, 2].filter((row) => after === undefined || row > Number(after[0])),
        positionOf: (row) => [row, ''],
        present: (row) => `${name} ${row}`,
      }),
  })
  const { request, key } = await serveOrders({ endpoints: [log] })
  const names = {
    'a': 'a',
    'a:b': './a:b',
    'a%2Fb': 'a%2Fb',
    "a'(b)*;@&=+$,!": "a'(b)*;@&=+$,!",
    'é': '%C3%A9',
  }
  for (const [segment, expected] of Object.entries({ ...names, '<"|>': '%3C%22%7C%3E', 'a%3ab': 'a%3ab' })) {
    const path = `/log/${segment}?partner=demo`
    const { headers, json } = await request(path, { key })
    const [, reference = ''] = /^<([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? []
    t.equal(reference, `${expected}?partner=demo&cursor=${json.page.next_cursor}`)
    const next = new URL(reference, `http://api.example/service${path}`)
    t.ok(next.pathname.startsWith('/service/log/'))
    const second = await request(next.pathname.slice('/service'.length) + next.search, { key })
    t.match(second.json, { data: [json.data[0].replace(/1$/, '2')], page: { has_more: false } }, segment)
    // RFC 2396 §5.2 appends to the path up to its last slash, and a reference of a query alone is no exception.
    const joined = `/log/${reference.replace('./', '')}`
    t.strictSame((await request(joined, { key })).json, second.json)
  }
})

t.test('parameters, members and the path are checked before a handler runs', async (t) => {
  const { request, post, key } = await serveOrders()
  const cases: readonly [string, readonly object[]][] = [
    ['/orders?partner=demo&x=1', [{ parameter: 'x' }]],
    ['/orders?partner=demo&from=1.5&limit=4', [{ parameter: 'from' }, { parameter: 'limit' }]],
    ['/orders?partner=demo&from=1&from=2', [{ parameter: 'from', detail: 'must not be repeated' }]],
    ['/orders?partner=demo&state=open&state=lost', [{ parameter: 'state' }]],
    ['/orders?partner=demo&from=secret', [{ parameter: 'from', detail: 'must be a number' }]],
    ['/orders/1/total?partner=demo', [{ parameter: 'shop', detail: 'is required' }]],
    ['/orders/1/total?partner=demo&shop=a&verbose=yes', [{ parameter: 'verbose' }]],
    [`/orders/${key.text}/total?partner=demo&shop=a`, [{ parameter: 'id' }]],
  ]
  for (const [path, errors] of cases) {
    const { status, json, text } = await request(path, { key })
    t.match([status, json.code, json.errors.length], [400, 'invalid_parameter', errors.length], path)
    t.match(json.errors, errors, path)
    t.notMatch(text, /secret|lost/)
  }
  const bodies: readonly [object, readonly object[]][] = [
    [{}, [{ pointer: '/item', detail: 'is required' }]],
    [{ item: 'too long', count: '1', more: 1 }, [{ pointer: '/more' }, { pointer: '/item' }, {
      pointer: '/count',
    }]],
    [{ item: 'a', tags: ['b', 1] }, [{ pointer: '/tags/1', detail: 'must be text' }]],
  ]
  for (const [body, errors] of bodies) {
    const { status, json } = await post('/orders', { partner: 'demo', ...body }, { key })
    t.match([status, json.code, json.errors.length], [422, 'invalid_body', errors.length])
    t.match(json.errors, errors)
  }
  t.equal(calls, 0)
  const valid = await post('/orders', { partner: 'demo', item: 'a' }, {
    key,
    headers: { 'idempotency-key': '"k 1"' },
  })
  t.strictSame([valid.status, valid.json.data], [201, {
    item: 'a',
    count: 1,
    tags: [],
    idempotency_key: 'k 1',
    by: key.id,
    digest: false,
  }])
  const shown = await request('/orders/a%2Fb/%C3%A9?partner=demo&shop=s&verbose=true', { key })
  t.match(shown.json.data, { id: 'a/b', part: 'é', verbose: true, shop: 's' })
})

t.test('schemas check lists as a whole, and make defaults anew', async (t) => {
  const seen: unknown[] = []
  const endpoint = defineEndpoint({
    name: 'lists',
    ...CREATE,
    path: '/lists/:id',
    body: {
      list: v.optional(v.pipe(v.array(v.number()), v.maxLength(2)), () => []),
      size: v.optional(v.pipe(v.string(), v.transform((text) => text.length)), 'abc'),
      needed: v.nonOptional(v.optional(v.string())),
      nested: v.optional(v.object({ mail: v.pipe(v.string(), v.email()), other: v.literal('x') })),
    },
    handle({ body }) {
      seen.push(body.list)
      return { data: { list: [...body.list], size: body.size, more: body.list.push(1) } }
    },
  })
  const query = defineEndpoint({
    name: 'texts',
    ...READ,
    path: '/texts',
    query: { a: v.pipe(v.array(v.string()), v.maxLength(1)), limit: v.optional(v.number()) },
    handle: ({ query }) => ({ data: query }),
  })
  const { request, post, key } = await serveOrders({ endpoints: [endpoint, query] })
  const send = (body: object) => post('/lists/1', { partner: 'demo', ...body }, { key })
  for (const _ of [1, 2]) {
    t.strictSame((await send({ needed: 'y' })).json.data, { list: [], size: 3, more: 1 })
  }
  t.not(seen[0], seen[1])
  t.match((await send({})).json.errors, [{ pointer: '/needed', detail: 'is required' }])
  t.match((await send({ needed: 'y', list: [1, 2, 3] })).json.errors, [{
    pointer: '/list',
    detail: 'must have at most 2 items',
  }])
  const { json, text } = await send({ needed: 'y', nested: { mail: 'hunter2' } })
  t.strictSame(json.errors, [
    { pointer: '/nested/mail', detail: 'must be an e-mail address' },
    { pointer: '/nested/other', detail: 'is required' },
  ])
  t.notMatch(text, 'hunter2')
  t.match(await request('/texts?partner=demo&a=1&a=2', { key }), { status: 400 })
  t.strictSame((await request('/texts?partner=demo&a=1&limit=5', { key })).json.data, { a: ['1'], limit: 5 })
})

const KEY_SHAPED = `spk_live_Zt81Zt81Zt81_${'0123456789'.repeat(4).slice(0, 38)}`

/** An endpoint that returns what its schemas make of a request. */
function echo(name: string, query: Record<string, v.GenericSchema>, body?: Record<string, v.GenericSchema>) {
  return defineEndpoint({
    name,
    method: body ? 'POST' : 'GET',
    path: `/echo/${name}`,
    scope: body ? 'create:orders' : 'read:orders',
    summary: 'Return what was sent.',
    query,
    ...(body && { body }),
    handle: ({ query, body }) => ({ data: { ...query, ...body } }),
  })
}

t.test('values of a query become the numbers and booleans that a schema takes', async (t) => {
  const one = v.picklist([1, 2])
  const query = {
    size: v.optional(one),
    sizes: v.optional(v.array(one)),
    seven: v.optional(v.literal(7)),
    on: v.optional(v.literal(true)),
    mixed: v.optional(v.union([v.pipe(v.number(), v.maxValue(9)), v.boolean()])),
    text: v.optional(v.union([v.string(), v.number()])),
    word: v.optional(v.pipe(v.string(), v.maxLength(2))),
    spare: v.optional(v.fallback(v.number(), 3)),
  }
  const { request, key } = await serveOrders({ endpoints: [echo('values', query)] })
  const send = (parameters: string) => request(`/echo/values?partner=demo&${parameters}`, { key })
  const sent = 'size=2&sizes=1&sizes=2&seven=7&on=true&mixed=false&text=5&word=17&spare=4'
  t.strictSame((await send(sent)).json.data, {
    size: 2,
    sizes: [1, 2],
    seven: 7,
    on: true,
    mixed: false,
    text: '5',
    word: '17',
    spare: 4,
  })
  t.equal((await send('mixed=9')).json.data.mixed, 9)
  for (const wrong of ['size=3', 'size=true', 'sizes=1&sizes=3', 'seven=8', 'on=false', 'on=1', 'mixed=x']) {
    t.match(await send(wrong), { status: 400, json: { code: 'invalid_parameter' } }, wrong)
  }
  t.match((await send('word=123')).json.errors, [{
    parameter: 'word',
    detail: 'must have at most 2 characters',
  }])
  t.match((await send('mixed=10')).json.errors, [{ parameter: 'mixed', detail: 'must be 9 or less' }])
})

t.test('partners read in our words what a schema refuses, and never the value', async (t) => {
  const secret = 'hunter2'
  const text = v.string()
  const cases: readonly [v.GenericSchema, unknown, string][] = [
    [text, [secret], 'must be text'],
    [v.number(), secret, 'must be a number'],
    [v.boolean(), secret, 'must be true or false'],
    [v.null(), secret, 'must be null'],
    [v.optional(v.nonNullable(v.nullable(text))), null, 'must not be null'],
    [v.literal('x'), secret, 'must be "x"'],
    [v.picklist(['a', 'b']), secret, 'must be one of "a", "b"'],
    [v.enum({ A: 'a' }), secret, 'must be "a"'],
    [v.union([v.number(), v.boolean()]), secret, 'must be a number, or true or false'],
    [v.union([v.number(), v.strictObject({ a: text })]), { a: 1 }, 'is not valid'],
    [v.array(text), secret, 'must be a list'],
    [v.tuple([text]), secret, 'must be a list'],
    [v.object({}), secret, 'must be an object'],
    [v.record(text, text), secret, 'must be an object'],
    [v.variant('x', [v.object({ x: v.literal(1) })]), secret, 'must be an object'],
    [v.pipe(v.number(), v.integer()), 1.5, 'must be an integer'],
    [
      v.pipe(v.number(), v.safeInteger()),
      1.5,
      'must be an integer from -9007199254740991 to 9007199254740991',
    ],
    [v.pipe(v.number(), v.minValue(2)), 1, 'must be 2 or more'],
    [v.pipe(v.number(), v.maxValue(2)), 3, 'must be 2 or less'],
    [v.pipe(v.number(), v.gtValue(2)), 2, 'must be more than 2'],
    [v.pipe(v.number(), v.ltValue(2)), 2, 'must be less than 2'],
    [v.pipe(v.number(), v.multipleOf(2)), 3, 'must be a multiple of 2'],
    [v.pipe(v.number(), v.value(2)), 3, 'must be 2'],
    [v.pipe(v.number(), v.notValue(2)), 2, 'must not be 2'],
    [v.pipe(v.number(), v.notValues([2, 3])), 2, 'must not be one of 2, 3'],
    [v.pipe(text, v.minLength(1)), '', 'must have at least 1 character'],
    [v.pipe(text, v.minLength(9)), secret, 'must have at least 9 characters'],
    [v.pipe(text, v.maxLength(2)), secret, 'must have at most 2 characters'],
    [v.pipe(text, v.length(2)), secret, 'must have 2 characters'],
    [v.pipe(text, v.notLength(7)), secret, 'must not have 7 characters'],
    [v.pipe(text, v.maxBytes(1)), secret, 'must have at most 1 byte'],
    [v.pipe(text, v.minWords('en', 2)), secret, 'must have at least 2 words'],
    [v.pipe(v.array(text), v.minLength(2)), [secret], 'must have at least 2 items'],
    [v.pipe(v.record(text, text), v.maxEntries(1)), { a: secret, b: secret }, 'must have at most 1 member'],
    [v.pipe(text, v.empty()), secret, 'must be empty'],
    [v.pipe(text, v.nonEmpty()), '', 'must not be empty'],
    [v.pipe(text, v.startsWith('x')), secret, 'must begin with "x"'],
    [v.pipe(text, v.endsWith('x')), secret, 'must end with "x"'],
    [v.pipe(text, v.includes('x')), secret, 'must contain "x"'],
    [v.pipe(text, v.excludes('h')), secret, 'must not contain "h"'],
    [v.pipe(text, v.regex(/^x$/i)), secret, 'must match /^x$/i'],
    [v.pipe(text, v.email()), secret, 'must be an e-mail address'],
    [v.pipe(text, v.url()), secret, 'must be a URL'],
    [v.pipe(text, v.uuid()), secret, 'must be a UUID'],
    [v.pipe(text, v.isoDate()), secret, 'must be a date, YYYY-MM-DD'],
    [
      v.pipe(text, v.isoTimestamp()),
      secret,
      'must be a date and time with an offset, such as 2026-01-31T09:30:00Z',
    ],
    [v.pipe(text, v.bic()), secret, 'is not a valid bic'],
    [v.pipe(text, v.check(() => false)), secret, 'is not valid'],
    [v.custom(() => false), secret, 'is not valid'],
    [v.pipe(text, v.toNumber()), secret, 'must be a number'],
    [v.pipe(text, v.email('write to us')), secret, 'write to us'],
    [v.pipe(text, v.isoDate('Invalid date: pass YYYY-MM-DD')), secret, 'Invalid date: pass YYYY-MM-DD'],
    [v.pipe(text, v.check(() => false, ({ input }) => `${input}: no`)), KEY_SHAPED, '[redacted]'],
  ]
  const schemas = Object.fromEntries(cases.map(([schema], index) => [`c${index}`, v.optional(schema)]))
  const { post, key } = await serveOrders({ endpoints: [echo('refused', {}, schemas)] })
  for (const [index, [, value, detail]] of cases.entries()) {
    const { json, text } = await post('/echo/refused', { partner: 'demo', [`c${index}`]: value }, { key })
    t.strictSame(json.errors, [{ pointer: `/c${index}`, detail }])
    t.notMatch(text, secret)
  }
  const nested = {
    strict: v.optional(v.strictObject({ a: v.optional(text) })),
    pair: v.optional(v.strictTuple([text])),
    kind: v.optional(v.variant('x', [v.object({ x: v.literal(1) }), v.object({ x: v.literal(2) })])),
  }
  const parts = await serveOrders({ endpoints: [echo('parts', {}, nested)] })
  const sent = { partner: 'demo', strict: { b: 1 }, pair: ['a', 'b'], kind: { x: 3 } }
  const { json } = await parts.post('/echo/parts', sent, { key: parts.key })
  t.strictSame(json.errors, [
    { pointer: '/strict/b', detail: 'is not a member of this object' },
    { pointer: '/pair/1', detail: 'is not an item of this list' },
    { pointer: '/kind/x', detail: 'must be one of 1, 2' },
  ])
})

t.test('a number that would lose digits is refused', async (t) => {
  const query = {
    size: v.optional(v.number()),
    sizes: v.optional(v.array(v.number())),
    text: v.optional(v.string()),
  }
  const body = { size: v.optional(v.number()), any: v.optional(v.unknown()), a_b: v.optional(v.any()) }
  const { request, post, key } = await serveOrders({
    endpoints: [echo('numbers', query), echo('sent', {}, body)],
  })
  const send = (parameters: string) => request(`/echo/numbers?partner=demo&${parameters}`, { key })
  const nines = '9'.repeat(309)
  const exact = '9007199254740992'
  for (
    const number of [
      '9007199254740993',
      nines,
      `-${nines}`,
      '0.12345678901234567890',
      `1.${'0'.repeat(400)}1`,
    ]
  ) {
    const detail = 'has more digits than a number keeps'
    for (const name of ['size', 'sizes']) {
      const { status, json } = await send(`${name}=${number}`)
      t.strictSame([status, json.errors], [400, [{ parameter: name, detail }]])
    }
    t.equal((await send(`text=${number}`)).json.data.text, number, 'a text keeps them')
    const sent = await post(
      '/echo/sent',
      `{"partner":"demo","any":[{"x":"1e999,"},{"y":${number}}],"size":${number}}`,
      {
        key,
      },
    )
    t.match(sent.json, {
      status: 422,
      errors: [{ pointer: '/any/1/y', detail }, { pointer: '/size', detail }],
    })
  }
  for (
    const number of [
      exact,
      '0.1',
      '1.50',
      '-0',
      '000.5',
      `1${'0'.repeat(22)}`,
      '9007199254740993.'.slice(0, 15),
    ]
  ) {
    t.equal((await send(`size=${number}`)).json.data.size, Number(number) || 0, number)
  }
  for (const number of [exact, '1.5e3', '1E400', '-1e-400', '12e-1', '0e9', '1e23', '-0.0']) {
    const lossy = /400/.test(number)
    const { status, json } = await post('/echo/sent', `{"partner":"demo","a_b":${number}}`, { key })
    t.equal(status, lossy ? 422 : 200, number)
    if (lossy) t.match(json.errors, [{ pointer: '/a_b' }])
    else t.equal(json.data.a_b, Number(number) || 0)
  }
  const many = await post('/echo/sent', `{"partner":"demo","any":[${Array(50).fill(nines)}]}`, { key })
  t.equal(many.json.errors.length, 20)
  const strings = JSON.stringify({ partner: 'demo', any: [nines, `\\"${nines}`, { [`n${nines}`]: 1 }] })
  t.equal((await post('/echo/sent', strings, { key })).status, 200)
})

t.test('null in a body is what its schema makes of it', async (t) => {
  const nulls = echo('nulls', {}, {
    cleared: v.optional(v.nullable(v.string()), 'default'),
    count: v.optional(v.number(), 1),
    either: v.nullish(v.string()),
  })
  const { post, key } = await serveOrders({ endpoints: [nulls] })
  const send = (body: object) => post('/echo/nulls', { partner: 'demo', ...body }, { key })
  t.strictSame((await send({})).json.data, { cleared: 'default', count: 1 })
  t.strictSame((await send({ cleared: null, either: null })).json.data, {
    cleared: null,
    count: 1,
    either: null,
  })
  t.match(await send({ count: null }), { status: 422, json: { errors: [{ pointer: '/count' }] } })
})

t.test('all failures are reported, also where the host has set valibot to stop at the first one', async (t) => {
  const { post, key } = await serveOrders({
    endpoints: [echo('both', {}, { item: v.object({ a: v.string(), b: v.string() }) })],
  })
  v.setGlobalConfig({ abortEarly: true })
  t.teardown(() => v.deleteGlobalConfig())
  const { json } = await post('/echo/both', { partner: 'demo', item: { a: 1, b: 2 } }, { key })
  const pointers = json.errors.map(({ pointer }: { readonly pointer: string }) => pointer)
  t.strictSame(pointers, ['/item/a', '/item/b'])
})

t.test('what has a fallback may be absent, and is described so', async (t) => {
  const size = v.fallback(v.number(), 3)
  const query = { size, sizes: v.fallback(v.array(v.number()), [1]) }
  const body = { size, inner: v.object({ size, kind: v.string() }), strict: v.strictObject({ size }) }
  const { request, post, api, key } = await serveOrders({
    endpoints: [echo('asked', query), echo('sent', {}, body)],
  })
  const asked = (more: string) => request(`/echo/asked?partner=demo${more}`, { key })
  t.strictSame((await asked('')).json.data, { size: 3, sizes: [1] })
  t.strictSame((await asked('&size=ten&sizes=5')).json.data, { size: 3, sizes: [5] })
  const { json } = await post('/echo/sent', { partner: 'demo', inner: { kind: 'a' }, strict: {} }, { key })
  t.strictSame(json.data, { size: 3, inner: { size: 3, kind: 'a' }, strict: { size: 3 } })
  const described = await (await api.fetch(new Request('http://x.example/service/openapi.json'))).json()
  const { parameters } = described.paths['/service/echo/asked'].get
  const required = parameters.filter((parameter: { required?: boolean }) => parameter.required)
  t.strictSame(
    required.map(({ name }: { name?: string }) => name),
    [],
    'none but partner, which is a reference',
  )
  const { schema } = described.paths['/service/echo/sent'].post.requestBody.content['application/json']
  t.strictSame(schema.required, ['partner', 'inner', 'strict'])
  t.strictSame(schema.properties.inner.required, ['kind'])
  t.notOk('required' in schema.properties.strict)
})

t.test('the failures of a value are listed up to a bound, and counted', async (t) => {
  const fields = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`f${index}`, v.string()]))
  const body = { texts: v.optional(v.array(v.string())), rows: v.optional(v.array(v.object(fields))) }
  const { post, key } = await serveOrders({ endpoints: [echo('many', {}, body)] })
  const errorsOf = async (sent: object): Promise<{ pointer: string; detail: string }[]> =>
    (await post('/echo/many', { partner: 'demo', ...sent }, { key })).json.errors
  const hundred = await errorsOf({ texts: Array(100).fill(1) })
  t.strictSame([hundred.length, hundred.at(-1)], [100, { pointer: '/texts/99', detail: 'must be text' }])
  const many = await errorsOf({ texts: Array(16_000).fill(1) })
  t.strictSame([many.length, many.at(-2)?.pointer], [101, '/texts/99'])
  t.strictSame(many.at(-1), { pointer: '/texts', detail: 'has 15900 more errors' })
  t.strictSame(await errorsOf({ rows: Array(10_000).fill({}) }), [
    { pointer: '/rows/0/f0', detail: 'is required' },
    { pointer: '/rows', detail: 'may have more errors: it is too large for all to be listed' },
  ])
})

t.test('a body is nested as deep as schemas that refer to themselves can check', async (t) => {
  type Tree = { readonly child?: Tree | undefined }
  const tree: v.GenericSchema<Tree> = v.object({ child: v.optional(v.lazy(() => tree)) })
  const { post, key } = await serveOrders({
    endpoints: [echo('nested', {}, { tree, any: v.optional(v.any()) })],
  })
  const nested = (depth: number) => `${'{"child":'.repeat(depth)}{}${'}'.repeat(depth)}`
  const send = (depth: number) => post('/echo/nested', `{"partner":"demo","tree":${nested(depth)}}`, { key })
  t.equal((await send(64)).status, 200)
  for (const depth of [65, 2_000, 3_200]) {
    t.match(await send(depth), {
      status: 422,
      json: { errors: [{ pointer: '/tree', detail: 'must not be nested more than 64 levels deep' }] },
    })
  }
  const lists = `{"partner":"demo","tree":{},"any":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
  t.match((await post('/echo/nested', lists, { key })).json.errors, [{ pointer: '/any' }])
})

t.test('a list is not taken for an object whose members have numbers as their names', async (t) => {
  const record = v.record(v.string(), v.number())
  const some = v.object({ a: v.optional(v.string()) })
  const body = {
    record: v.optional(record),
    some: v.optional(some),
    either: v.optional(v.union([some, v.string()])),
    both: v.optional(v.union([some, record])),
    inner: v.optional(v.object({ rows: v.array(v.nullable(record)) })),
    lists: v.optional(v.record(v.string(), v.array(v.number()))),
  }
  const { post, key } = await serveOrders({ endpoints: [echo('lists', {}, body)] })
  const send = (sent: object) => post('/echo/lists', { partner: 'demo', ...sent }, { key })
  const cases: readonly (readonly [object, pointer: string])[] = [
    [{ record: [1] }, '/record'],
    [{ some: [] }, '/some'],
    [{ both: [1] }, '/both'],
    [{ inner: { rows: [{ a: 1 }, null, [1]] } }, '/inner/rows/2'],
  ]
  for (const [sent, pointer] of cases) {
    t.strictSame((await send(sent)).json.errors, [{ pointer, detail: 'must be an object' }])
  }
  const right = { record: { a: 1 }, some: {}, both: { a: '1' }, inner: { rows: [] }, lists: { a: [1] } }
  t.equal((await send(right)).status, 200)
})

t.test('what is exactly optional may be absent', async (t) => {
  const schemas = { some: v.exactOptional(v.string()), size: v.exactOptional(v.number(), 3) }
  const exact = echo('exact', schemas)
  const { request, post, key } = await serveOrders({ endpoints: [exact, echo('exactly', {}, schemas)] })
  const ask = async (parameters: string) =>
    (await request(`/echo/exact?partner=demo${parameters}`, { key })).json.data
  t.strictSame(await ask(''), { size: 3 })
  t.strictSame(await ask('&some=a&size=4'), { some: 'a', size: 4 })
  const send = (body: object) => post('/echo/exactly', { partner: 'demo', ...body }, { key })
  t.strictSame((await send({})).json.data, { size: 3 })
  t.match(await send({ some: null }), { status: 422, json: { errors: [{ pointer: '/some' }] } })
})

t.test('a cursor belongs to the values as they were sent', async (t) => {
  const list = (values: readonly string[]) => ({
    read: (after: readonly [unknown, string] | undefined, limit: number) =>
      values.filter((value) => after === undefined || value > after[1]).slice(0, limit),
    positionOf: (value: string) => [value, value] as const,
  })
  const tags = defineEndpoint({
    name: 'tags',
    ...READ,
    path: '/tags',
    query: { of: v.pipe(v.string(), v.transform((text) => new Set(text.split(',')))) },
    paging: { limit: 1, maximum: 2 },
    handle: ({ query, page }) => page(list([...query.of].toSorted())),
  })
  const search = defineEndpoint({
    name: 'search',
    ...CREATE,
    path: '/search',
    body: { words: v.array(v.string()) },
    paging: { limit: 1, maximum: 2 },
    handle: ({ body, page }) => page(list(body.words)),
  })
  const log: LogEvent[] = []
  const { request, post, key } = await serveOrders({
    endpoints: [tags, search],
    log: (event) => log.push(event),
  })
  const read = (of: string, more = '') => request(`/tags?partner=demo&of=${of}${more}`, { key })
  const cursor = `&cursor=${(await read('a,b')).json.page.next_cursor}`
  t.strictSame((await read('a,b', `${cursor}&limit=2`)).json.data, ['b'])
  t.equal((await read('a,c', cursor)).json.code, 'invalid_cursor')

  const find = (words: string[], more = '') => post(`/search${more}`, { partner: 'demo', words }, { key })
  const found = `?cursor=${(await find(['a', 'b'])).json.page.next_cursor}`
  t.strictSame((await find(['a', 'b'], found)).json.data, ['b'])
  t.equal((await find(['a', 'c'], found)).json.code, 'invalid_cursor')

  t.equal((await find(['a'.repeat(350), 'b'])).status, 200)
  t.equal((await find(['a'.repeat(720), 'b'])).json.code, 'internal')
  t.match(log.at(-1), { endpoint: 'search', error: /^TypeError: .*cursor/ })
})

t.test('the revision is asked for once the policy allows a response', async (t) => {
  let asked = 0
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const endpoint = defineEndpoint({
    name: 'revised',
    ...READ,
    path: '/revised',
    revision: () => (asked++, released.then(() => 'later')),
    handle: () => ({ data: 1 }),
  })
  const { request, key, world } = await serveOrders({ endpoints: [endpoint] })
  t.equal((await request('/revised?partner=acme', { key })).json.code, 'partner_mismatch')
  t.equal((await request('/revised', { key })).json.code, 'partner_missing')
  const powerless = await world.issue({ partner: 'demo', scopes: [] })
  t.equal((await request('/revised?partner=demo', { key: powerless })).json.code, 'scope_missing')
  t.equal(asked, 0)
  const pending = request('/revised?partner=demo', { key })
  await world.keyRing.revoke(key.id)
  release()
  t.equal((await pending).json.code, 'key_revoked')
})

t.test('responses are cached by partner, target and revision', async (t) => {
  const { request, key, other, world } = await serveOrders()
  revision = '1'
  const read = (partner: string, sent = key) =>
    request(`/orders/1/x?partner=${partner}&shop=s`, { key: sent })
  // The second request is the first whose response is kept.
  for (let count = 0; count < 4; count++) t.equal((await read('demo')).json.data.revision, '1')
  t.equal(calls, 2)
  t.match((await read('acme', other)).json.data, { partner: 'acme' })
  t.equal((await read('demo', other)).json.code, 'partner_mismatch')
  const powerless = await world.issue({ partner: 'demo', scopes: [] })
  t.equal((await read('demo', powerless)).json.code, 'scope_missing')
  const testKey = await world.issue({ partner: 'demo', environment: 'test' })
  t.equal((await read('demo', testKey)).json.data.kind, 'test')
  t.equal((await read('demo')).json.data.kind, 'live')
  revision = '2'
  t.equal((await read('demo')).json.data.revision, '2')
  await world.partners.update('demo', { name: 'New' })
  const before = calls
  await read('demo')
  t.equal(calls, before + 1, 'a handler may return what it knows of the partner')
})

t.test('a handler that fails is a problem of the service', async (t) => {
  const log: LogEvent[] = []
  const { request, key } = await serveOrders({ log: (event) => log.push(event) })
  const circular: { self?: unknown } = {}
  circular.self = circular
  const invalid = { retryAfterSeconds: 1n as unknown as number, required_scope: 1n as unknown as string }
  const failures: readonly (() => unknown)[] = [
    () => undefined,
    () => Promise.reject(Object.create(null)),
    () => Promise.reject(undefined),
    () => Promise.reject(new Problem('rate_limited', invalid)),
    () => new Problem('rate_limited', { retryAfterSeconds: NaN }),
    () => new Problem('order_gone' as 'internal'),
    () => ({}),
    ...[() => 1, 1n, circular, Promise.resolve(1), [{ id: Promise.resolve(1) }], { id: () => 1 }, { id: NaN }]
      .map((data) => () => ({ data })),
    () => ({ data: new Map([[1, 2]]) }),
  ]
  for (const failure of failures) {
    trouble = failure
    t.equal((await request('/trouble?partner=demo', { key })).json.code, 'internal')
    t.match(log.at(-1), { event: 'request', endpoint: 'trouble', status: 500 })
  }
  const problems = [
    new Problem('not_found', { detail: 'There is no such order.' }),
    new Problem('conflict', { detail: 'The order was sent.' }),
    new Problem('rate_limited', { retryAfterSeconds: 7 }),
  ]
  for (const problem of problems) {
    for (const outcome of [() => problem, () => Promise.reject(problem)]) {
      trouble = outcome
      const { json } = await request('/trouble?partner=demo', { key })
      t.match(json, { code: problem.code, detail: problem.message })
    }
  }
  trouble = () => ({ data: [1], page: undefined })
  t.strictSame((await request('/trouble?partner=demo', { key })).json, { data: [1] })
  const results: readonly (readonly [object, RegExp])[] = [
    [{ headers: { 'X-Request-Id': 'forged' } }, /the member headers: a result has data and page alone\.$/],
    [{ status: 201 }, /^TypeError: The handler of trouble returned the member status: /],
    ...[null, 2, {}, { limit: 1, has_more: false }].map((page) =>
      [
        { page },
        /^TypeError: The handler of trouble returned a page that is not as input\.page makes it\.$/,
      ] as const
    ),
  ]
  for (const [more, error] of results) {
    trouble = () => ({ data: [1], ...more })
    const { json, headers } = await request('/trouble?partner=demo', { key })
    t.equal(json.code, 'internal')
    t.match(headers.get('x-request-id'), /^req_/)
    t.match(log.at(-1), { endpoint: 'trouble', error })
  }
})

t.test('data is what JSON carries of it, and the log names what it cannot', async (t) => {
  const log: LogEvent[] = []
  const { request, key } = await serveOrders({ log: (event) => log.push(event) })
  const call = async (data: unknown) => {
    trouble = () => ({ data })
    return await request('/trouble?partner=demo', { key })
  }
  class Money {
    readonly #cents = 995
    toJSON(member: string) {
      return { member, cents: this.#cents }
    }
  }
  const nested = (levels: number): unknown => levels === 0 ? 1 : [nested(levels - 1)]
  const sent = { at: new Date(0), price: new Money(), none: undefined, list: [undefined, null, ''] }
  t.strictSame((await call(sent)).json.data, JSON.parse(JSON.stringify(sent)))
  t.strictSame((await call(nested(1_000))).json.data, nested(1_000))

  const circular: { self?: unknown } = {}
  circular.self = [circular]
  const faults: readonly (readonly [unknown, string])[] = [
    [circular, 'data that is circular or more than 1000 levels deep'],
    [nested(1_001), 'data that is circular or more than 1000 levels deep'],
    [{ toJSON: () => NaN }, 'the number NaN as data, which JSON cannot carry'],
    [[{ id: { toJSON: () => 1n } }], 'a bigint as the member id of data, which JSON cannot carry'],
  ]
  for (const [data, sentence] of faults) {
    t.equal((await call(data)).status, 500)
    t.match(log.at(-1), { error: `TypeError: The handler of trouble returned ${sentence}.` })
  }
})

t.test('a query builder is run by awaiting it, in a list, a revision and a handler', async (t) => {
  let runs = 0
  // Like that of an ORM: no promise, and without effect until it is awaited.
  const query = <T>(value: T) => {
    const lazy: PromiseLike<T> = { then: (...handlers) => (runs++, Promise.resolve(value).then(...handlers)) }
    return lazy as Promise<T>
  }
  const endpoints = [
    defineEndpoint({
      ...READ,
      name: 'built',
      path: '/built',
      paging: { limit: 1, maximum: 1 },
      handle: ({ page }) =>
        page({ read: () => query(['a', 'b']), positionOf: (row): readonly [string, string] => [row, row] }),
    }),
    defineEndpoint({
      ...READ,
      name: 'single',
      path: '/single',
      revision: () => query('1'),
      handle: () => query({ data: 'a' }),
    }),
  ]
  const { request, key } = await serveOrders({ endpoints })
  const list = await request('/built?partner=demo', { key })
  t.match([list.status, list.json], [200, { data: ['a'], page: { has_more: true } }])
  const single = await request('/single?partner=demo', { key })
  t.strictSame([single.status, single.json], [200, { data: 'a' }])
  t.equal(runs, 3)
})

t.test('a list that cannot be read is an error of the host, in one sentence', async (t) => {
  const log: LogEvent[] = []
  const position: { key: unknown; id: unknown } = { key: 1, id: 'a' }
  const list = {
    read: () => [1, 2],
    positionOf: () => [position.key, position.id] as unknown as readonly [1, 'a'],
  }
  const paging = { limit: 1, maximum: 1 }
  const endpoints = [
    defineEndpoint({ ...READ, name: 'unpaged', path: '/unpaged', handle: ({ page }) => page(list) }),
    defineEndpoint({ ...READ, name: 'placed', path: '/placed', paging, handle: ({ page }) => page(list) }),
    defineEndpoint({
      ...READ,
      name: 'promised',
      path: '/promised',
      paging,
      handle: ({ page }) => page({ ...list, present: (row) => Promise.resolve(row) }),
    }),
    defineEndpoint({
      ...READ,
      name: 'unread',
      path: '/unread',
      paging,
      handle: ({ page }) => page({ ...list, read: () => null as unknown as number[] }),
    }),
  ]
  for (
    const [name, change] of Object.entries({
      misspelt: { presnt: String },
      incomplete: { positionOf: undefined },
    })
  ) {
    const wrong = { ...list, ...change } as typeof list
    endpoints.push(
      defineEndpoint({ ...READ, name, path: `/${name}`, paging, handle: ({ page }) => page(wrong) }),
    )
  }
  const { request, key } = await serveOrders({ endpoints, log: (event) => log.push(event) })
  const fail = async (name: string, error: RegExp) => {
    t.equal((await request(`/${name}?partner=demo`, { key })).json.code, 'internal', name)
    t.match(log.at(-1), { endpoint: name, error })
  }
  await fail('unpaged', /^TypeError: The endpoint unpaged reads a page and has no paging\./)
  await fail('promised', /^TypeError: The handler of promised returned a promise as the member 0 of data, /)
  await fail('misspelt', /^TypeError: page: there is no option "presnt"\. Did you mean "present"\?$/)
  await fail('incomplete', /^TypeError: page: positionOf must be a function, not undefined\.$/)
  await fail('unread', /^TypeError: read of a list must return an array of rows, not /)
  t.equal((await request('/placed?partner=demo', { key })).status, 200)
  for (
    const [name, values] of Object.entries({ key: [NaN, Infinity, undefined, null, {}], id: [1, undefined] })
  ) {
    for (const value of values) {
      Object.assign(position, { key: 1, id: 'a', [name]: value })
      await fail(
        'placed',
        /^TypeError: positionOf must return a text or finite number, and the id as a text\./,
      )
    }
  }
})

t.test('what cannot be served is refused when the service is created', async (t) => {
  const store = await openMemoryStore()
  await createModuleAdministration(store, { actor: 'test' })
    .define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
  const base = { name: 'x', ...READ, path: '/x', handle: () => ({ data: 1 }) } as const
  const cases: readonly [object, RegExp][] = [
    [{ name: 'X' }, /^The endpoint X: its name must be/],
    [{ name: 'plans' }, /its name is taken/],
    [{ method: 'PUT' }, /its method/],
    [{ path: '/x/' }, /its path must be/],
    [{ path: '/../x' }, /its path must be/],
    [{ path: 'x' }, /its path must be/],
    [
      { path: '/public/plans' },
      /its path is taken\. GET \/public\/plans and GET \/public\/plans of plans match the same path/,
    ],
    [{ path: '/public/:kind' }, /taken\. GET \/public\/:kind and GET \/public\/profiles of profiles match/],
    [{ path: '/:any', method: 'POST' }, /taken\. POST \/:any and GET \/partner-widget of widget match/],
    [{ limits: ['nope'] }, /its limits must be a list of key, /],
    [{ scope: 'orders' }, /its scope must be read, create, .* such as read:orders, not "orders"\.$/],
    [{ scope: undefined }, /its scope must be .*, not nothing\.$/],
  ]
  for (const [change, message] of cases) {
    const endpoint = defineEndpoint({ ...base, ...change })
    t.throws(() => createPartnerApi({ store }, { endpoints: [endpoint] }), { name: 'RangeError', message })
  }
  // As those of other libraries that follow Standard Schema.
  const zodLike = { '~standard': { vendor: 'zod', version: 1, validate: () => ({ value: 1 }) } }
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const misuses: readonly object[] = [
    { query: { limit: v.string() }, paging: { limit: 1, maximum: 2 } },
    { query: { cursor: v.string() } },
    { status: 201 },
    { query: { constructor: v.string() } },
    {
      query: {
        x: v.object({ y: v.pipeAsync(v.string(), v.checkAsync(() => Promise.resolve(true))) as never }),
      },
    },
    { query: { x: {} } },
    { paging: { limit: 3, maximum: 2 } },
    { method: 'POST', revision: () => '' },
    { body: {} },
    { response: zodLike },
    { response: null },
    { query: { x: zodLike } },
    { response: v.pipe(v.string(), v.examples([1n as never])) },
    { query: { x: v.pipe(v.string(), v.metadata({ default: circular })) } },
    { summary: undefined },
    { summary: ' ' },
    { description: 1 },
    { handle: undefined },
    ...[
      v.date(),
      v.bigint(),
      v.instance(URL),
      v.array(v.date()),
      v.optional(v.set(v.string())),
      v.union([v.string(), v.date()]),
      v.nullable(v.union([v.string(), v.optional(v.date())])),
      v.record(v.string(), v.date()),
      v.tuple([v.string(), v.bigint()]),
      v.tupleWithRest([v.string()], v.date()),
      v.variant('kind', [v.object({ kind: v.literal('a'), at: v.date() })]),
      v.intersect([v.object({ a: v.string() }), v.object({ at: v.date() })]),
      v.objectWithRest({ a: v.string() }, v.date()),
      v.lazy(() => v.date()),
    ].map((x) => ({ query: { x } })),
  ]
  for (const misuse of misuses) {
    const define = () => defineEndpoint({ ...base, ...misuse })
    t.throws(define, { name: 'RangeError', message: /^The endpoint x: / })
  }
  const broken: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /x is refused: it must be a schema of valibot, .*, not nothing\.$/],
    [{ a: v.string() }, /it must be a schema of valibot, .*, not an object\.$/],
    [v.minLength(1), /it must be a schema of valibot/],
    [v.object(undefined as never), /the entries of its object must be of schemas of valibot, not nothing\.$/],
    [v.object({ a: undefined as never }), /the member a of its object must be of schemas/],
    [v.object({ a: v.object({ b: 'text' as never }) }), /the member b of its object .*, not "text"\.$/],
    [v.array(undefined as never), /the item of its array must be/],
    [v.tuple([undefined as never]), /the item 0 of its tuple must be/],
    [v.record(v.string(), undefined as never), /the value of its record must be/],
    [v.lazy(() => undefined as never), /the value of its lazy must be/],
  ]
  for (const [schema, message] of broken) {
    const wrong = { ...base, method: 'POST', body: { x: schema } } as never
    t.throws(() => defineEndpoint(wrong), { name: 'RangeError', message })
  }
  const plain = { ...base, response: { id: 'text' } } as never
  t.throws(() => defineEndpoint(plain), /response is refused: it must be a schema of valibot/)
  // @ts-expect-error -- only schemas of valibot compile
  t.throws(() => defineEndpoint({ ...base, response: zodLike }), { name: 'RangeError' })
  const refused = { name: 'RangeError', message: /takes a \w+, which no request can send/ }
  // @ts-expect-error -- no query has a `Date`
  t.throws(() => defineEndpoint({ ...base, query: { x: v.date() } }), refused)
  // @ts-expect-error -- no query has a `bigint`, in a list or within `optional` neither
  t.throws(() => defineEndpoint({ ...base, query: { x: v.optional(v.array(v.bigint())) } }), refused)
  // @ts-expect-error -- no JSON has an object of a class
  t.throws(() => defineEndpoint({ ...base, method: 'POST', body: { x: v.instance(URL) } }), refused)
  // @ts-expect-error -- a check of its value does not help
  t.throws(() => defineEndpoint({ ...base, query: { x: v.pipe(v.date(), v.minValue(new Date())) } }), refused)
  const nested = v.object({ at: v.optional(v.date()) })
  // @ts-expect-error -- no JSON has a `Date`, in an object neither
  t.throws(() => defineEndpoint({ ...base, method: 'POST', body: { x: v.array(nested) } }), refused)
  // @ts-expect-error -- no JSON has a `Date`, as one of several types neither
  t.throws(() => defineEndpoint({ ...base, query: { x: v.union([v.string(), v.date()]) } }), refused)
  // @ts-expect-error -- no JSON has a `Date`, as a value of a record neither
  t.throws(() => defineEndpoint({ ...base, query: { x: v.record(v.string(), v.date()) } }), refused)
  // @ts-expect-error -- no JSON has a `bigint`, in a list of fixed length neither
  t.throws(() => defineEndpoint({ ...base, query: { x: v.tuple([v.string(), v.bigint()]) } }), refused)
  const either = v.union([v.object({ a: v.string() }), v.object({ a: v.optional(v.never()), b: v.string() })])
  defineEndpoint({
    ...base,
    method: 'POST',
    body: { either, plain: v.object({ no: v.optional(v.never()) }) },
  })
  const parsed = v.pipe(v.string(), v.isoDate(), v.transform((text) => new Date(text)))
  defineEndpoint({
    ...base,
    query: { since: v.optional(parsed), ids: v.array(v.number()), any: v.unknown() },
    handle: ({ query: { since, ids } }) => ({ data: [since?.toJSON(), ids.length] }),
  })
  // @ts-expect-error -- only policies that a key may carry compile
  const unlimited = defineEndpoint({ ...base, limits: ['month'] })
  t.throws(() => createPartnerApi({ store }, { endpoints: [unlimited] }), /its limits must be a list/)
  const huge = v.array(v.pipe(v.string(), v.minLength(1e9)))
  const large = defineEndpoint({
    ...base,
    response: v.pipe(huge, v.minLength(1e9)),
    handle: () => ({ data: [] }),
  })
  const response = v.array(v.object({ id: v.string() }))
  defineEndpoint({ ...base, response, handle: () => ({ data: [{ id: 'a' }] as const }) })
  defineEndpoint({
    ...base,
    response,
    paging: { limit: 1, maximum: 1 },
    handle: ({ page }) => page({ read: () => [{ id: 'a', secret: 1 }], positionOf: ({ id }) => [id, id] }),
  })
  // @ts-expect-error -- `data` has the type of `response`
  defineEndpoint({ ...base, response, handle: () => ({ data: [{ id: 1 }] }) })
  const described = createPartnerApi({ store }, { endpoints: [large] })
  for (const path of ['openapi.json', 'docs', 'docs.md', 'docs/x.md']) {
    t.equal((await described.fetch(new Request(`http://a.example/service/${path}`))).status, 200, path)
  }
  const twice = defineEndpoint({ ...base, path: '/x/:id/:id' })
  t.throws(() => createPartnerApi({ store }, { endpoints: [twice] }), /endpoint x: its path must be/)
  const one = defineEndpoint(base)
  t.throws(() => createPartnerApi({ store }, { endpoints: [one, one] }), /its name is taken/)
  t.throws(
    () =>
      createPartnerApi({ store }, {
        endpoints: [one, defineEndpoint({ ...base, name: 'y', path: '/:any' })],
      }),
    /The endpoint y: its path is taken\. GET \/:any and GET \/partner-widget of widget match/,
  )
  t.ok(
    createPartnerApi({ store }, { endpoints: [one, defineEndpoint({ ...base, name: 'y', method: 'POST' })] }),
  )
})

t.test('the error for a missing module has what defines it, as a call and as a command', async (t) => {
  const names = { 'read:x': 'x', 'update:orders': 'orders-update', 'create:banner': 'banner-create' }
  for (const [scope, name] of Object.entries(names)) {
    const store = await openMemoryStore()
    const modules = createModuleAdministration(store, { actor: 'test' })
    await modules.define({ name: 'orders', scope: 'read:orders', feature: 'Orders' })
    const endpoint = defineEndpoint({
      name: 'x',
      method: 'GET',
      path: '/x',
      // @ts-expect-error -- a text that need not have the form of a scope does not compile
      scope,
      summary: 'X',
      handle: () => ({ data: 1 }),
    })
    const create = () => createPartnerApi({ store }, { endpoints: [endpoint] })
    const call = `define({ name: '${name}', scope: '${scope}', feature: '${name}' })`
    const command = `partner-api modules define ${name} --scope ${scope} --feature ${name}`
    const message =
      `The endpoint x: the store has no module with the scope ${scope}. To define one before the service is created: ` +
      `await createModuleAdministration(store, { actor: 'setup' }).${call}, or ${command}`
    t.throws(create, { name: 'RangeError', message })
    await modules.define({ name, scope, feature: name })
    await create().close()
  }
})

t.test('a service that is refused leaves nothing in its store', async (t) => {
  const store = await openMemoryStore()
  const left: string[] = []
  const watched: Store = {
    ...store,
    onChange() {
      left.push('listener')
      return () => left.pop()
    },
    replicas: {
      ...store.replicas!,
      register(replica) {
        left.push('replica')
        return store.replicas!.register(replica)
      },
    },
  }
  const unknown = defineEndpoint({
    name: 'x',
    method: 'GET',
    path: '/x',
    scope: 'read:unknown',
    summary: 'X',
    handle: () => ({ data: 1 }),
  })
  t.throws(() => createPartnerApi({ store: watched }, { endpoints: [unknown] }), { name: 'RangeError' })
  t.strictSame(left, [])
})

t.test('documents and reports have own endpoints as they have all others', async (t) => {
  const { request, api, key } = await serveOrders()
  orders = [{ id: '1', state: 'open' }]
  const read = async (path: string) =>
    (await api.fetch(new Request(`http://x.example/service${path}`))).text()
  const described = JSON.parse(await read('/openapi.json'))
  const list = described.paths['/service/orders'].get
  t.match(list, { operationId: 'orders', tags: ['orders'], security: [{ partnerKey: ['read:orders'] }] })
  t.match(
    described.paths['/service/orders/{id}/{part}'].get.description,
    /^One order, or a part of it. Needs the scope/,
  )
  const schema = list.responses[200].content['application/json'].schema
  const response = await request('/orders?partner=demo', { key })
  t.strictSame(validatorFor(described)(schema, response.json), [])
  t.match(validatorFor(described)(schema, { data: [{ id: 1 }] }).length > 0, true)
  t.match(await read('/docs'), /<h2>Orders<\/h2>[^]*List orders/)
  await api.flush()
  const summary = await request('/partner/reports/summary?partner=demo')
  t.match(
    summary.json.data.requests.by_endpoint.find(({ path }: { path: string }) => path === '/service/orders'),
    {
      method: 'GET',
      requests: 1,
    },
  )
})

t.test('what a handler throws after its time is logged', async (t) => {
  const logged = Promise.withResolvers<LogEvent>()
  const log = (event: LogEvent) => void (event.event === 'handler_failed' && logged.resolve(event))
  const { request, key } = await serveOrders({ handlerTimeoutMs: 1, log })
  const late = Promise.withResolvers<never>()
  trouble = () => late.promise
  t.equal((await request('/trouble?partner=demo', { key })).status, 503)
  late.reject(new Error('too late'))
  t.match(await logged.promise, { level: 'error', endpoint: 'trouble', error: 'Error: too late' })
})

t.test('documents say which members a strict object has, and what must not be absent', async (t) => {
  const strict = echo('strict', {}, {
    strict: v.strictObject({ a: v.string() }),
    open: v.object({ a: v.string() }),
    needed: v.nonOptional(v.optional(v.string())),
    some: v.nonNullish(v.nullish(v.number())),
    shown: v.nonNullable(v.nullable(v.picklist(['a', 'b']))),
  })
  const { api } = await serveOrders({ endpoints: [strict] })
  const json = await (await api.fetch(new Request('http://x.example/service/openapi.json'))).json()
  const { schema } = json.paths['/service/echo/strict'].post.requestBody.content['application/json']
  const { partner: _, ...properties } = schema.properties
  const open = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
  t.strictSame(properties, {
    strict: { ...open, additionalProperties: false },
    open,
    needed: { type: 'string' },
    some: { type: 'number' },
    shown: { type: 'string', enum: ['a', 'b'] },
  })
})

t.test('documents tell own endpoints and modules apart from all others', async (t) => {
  const store = await openMemoryStore()
  const modules = createModuleAdministration(store, { actor: 'test' })
  const names = ['keys', 'service', 'content', 'orders']
  const endpoints = []
  for (const [index, name] of names.entries()) {
    await modules.define({ name, scope: `read:${name}`, feature: `Feature of ${name}.` })
    endpoints.push(defineEndpoint({
      name: ['a-1', 'a1', 'a--b', 'a-b'][index]!,
      method: 'GET',
      path: `/${name}`,
      scope: `read:${name}`,
      summary: `List ${name}.`,
      handle: () => ({ data: [] }),
    }))
  }
  const basePath = `/${'a'.repeat(300)}`
  const api = createPartnerApi({ store }, { endpoints, basePath })
  const read = async (name: string) =>
    await (await api.fetch(new Request(`http://x.example${basePath}/service/${name}`))).text()
  const document = JSON.parse(await read('openapi.json'))
  const operations = Object.values<
    Record<string, { operationId: string; description: string; tags: string[] }>
  >(document.paths).flatMap((methods) => Object.values(methods))
  const ids = operations.map(({ operationId }) => operationId)
  t.equal(new Set(ids).size, ids.length, 'operations have ids of their own')
  const own = operations.filter(({ description }) => description.startsWith('List '))
  t.strictSame(own.map(({ tags: [tag] }) => tag), [
    'keys module',
    'service module',
    'content module',
    'orders',
  ])
  t.equal(
    document.tags.find(({ name }: { name: string }) => name === 'orders').description,
    'Feature of orders.',
  )
  for (const { description } of [...own, ...document.tags]) t.notMatch(description, '..')
  const page = await read('docs')
  for (const title of ['Keys module', 'Service module', 'Content module', 'Orders']) {
    t.equal(page.split(`<h2>${title}</h2>`).length, 2, title)
  }
})

t.test('verify-key lists paths of any length as its schema says', async (t) => {
  const long = defineEndpoint({
    name: 'long',
    ...READ,
    path: `/${'a'.repeat(300)}` as const,
    handle: () => ({ data: 1 }),
  })
  const { api, post, key } = await serveOrders({ endpoints: [long] })
  const verified = await post('/developer/verify-key', { partner: 'demo' }, { key })
  const described = await (await api.fetch(new Request('http://x.example/service/openapi.json'))).json()
  const { schema } =
    described.paths['/service/developer/verify-key'].post.responses[200].content['application/json']
  t.strictSame(validatorFor(described)(schema, verified.json), [])
})

t.test('modules and endpoints may have the name of a property of every object', async (t) => {
  const store = await openMemoryStore()
  await createModuleAdministration(store, { actor: 'test' })
    .define({ name: 'constructor', scope: 'read:constructor', feature: 'Builders' })
  const endpoint = defineEndpoint({
    name: 'constructor',
    method: 'GET',
    path: '/builders/:slug',
    scope: 'read:constructor',
    summary: 'List builders',
    response: v.array(v.pipe(v.object({ next: v.lazy(() => v.string()) }), v.title('Problem'))),
    handle: () => ({ data: [] }),
  })
  const api = createPartnerApi({ store }, { endpoints: [endpoint] })
  const read = async (name: string) =>
    await (await api.fetch(new Request(`http://x.example/service/${name}`))).text()
  const { paths, tags } = JSON.parse(await read('openapi.json'))
  const { description, parameters, responses } = paths['/service/builders/{slug}'].get
  t.match(parameters[0], { name: 'slug', description: 'The slug in the path.' }, 'not that of a profile')
  t.match(description, /^List builders. Needs/)
  t.match(responses[200].content['application/json'].schema.properties.data, { type: 'array' })
  t.match(tags.at(-2), { name: 'constructor', description: 'Builders.' })
  t.match(await read('docs'), '<h2>Constructor</h2>')
})
