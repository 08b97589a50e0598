/** Section 4: a signup can be repeated safely with an idempotency key. */
import { FORGED_KEY, pairs, REFUSED as INVALID, TAKEN as VALID } from './signup-fields.ts'
import { expectInvalid, expectProblem } from './expect.ts'
import {
  get,
  post,
  type Service,
  type Suite,
  type TestContext,
  type TestRequest,
  type TestResponse,
} from './service.ts'

const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }

interface More extends Partial<TestRequest> {
  readonly key?: { readonly text: string }
  /** The idempotency key. */
  readonly once?: string
}

type SignUp = (body: object | string, more?: More) => Promise<TestResponse>

function signUpAt(service: Service): SignUp {
  return (body, { once, headers, ...more } = {}) =>
    post(service, typeof body === 'string' ? body : JSON.stringify(body), {
      target: `${service.root}/partner/signups`,
      headers: { ...headers, ...(once !== undefined && { 'idempotency-key': once }) },
      ...more,
    })
}

export const signups: readonly Suite[] = [{
  tests: {
    'each member of a signup is validated': memberRules,
    'all validation errors are reported together': allErrorsReported,
    'a signup repeated with one idempotency key is stored once': idempotency,
    'Idempotency-Key has 1 to 255 characters, quoted or not': idempotencyKeys,
    'a signup spends the quotas `key` and `signup`': spentQuotas,
  },
}, {
  changesContent: true,
  tests: { 'a repeated signup is replayed after what it refers to has gone': goneReferences },
}]

/** Combines the nth value of every member into the nth body. */
function combine(fields: typeof VALID): object[] {
  const most = Math.max(...fields.map(([, values]) => values.length))
  return Array.from({ length: most }, (_, round) =>
    Object.fromEntries(
      fields.filter(([, values]) => round < values.length).map(([field, values]) => [field, values[round]]),
    ))
}

async function memberRules(t: TestContext, service: Service): Promise<void> {
  const signUp = signUpAt(service)
  for (const body of combine(VALID)) {
    const response = await signUp({ ...required, ...body })
    t.equal(response.status, 201, JSON.stringify(body).slice(0, 200))
    const { id, status, created_at: createdAt, ...rest } = response.json.data
    t.strictSame([status, rest], ['received', {}])
    t.ok(/^sgn_[0-9A-Za-z]+$/.test(id), id)
    t.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000, createdAt)
  }
  for (const body of combine(INVALID)) {
    const errors = Object.keys(body).map((field) => `/${field}`)
    // The TAP parser treats some white space as the end of a line.
    const shown = JSON.stringify(body).slice(0, 200).replace(/\s/g, ' ')
    expectProblem(t, await signUp({ ...required, ...body }), 'invalid_body', shown, { errors })
  }
  const members: readonly (readonly [metadata: object | string, pointers: readonly string[]])[] = [
    [{ a: 1, b: null, c: ['x'], d: 'fine' }, ['/metadata/a', '/metadata/b', '/metadata/c']],
    [{ a: 'x'.repeat(501), ['x'.repeat(41)]: 'y' }, ['/metadata/a', `/metadata/${'x'.repeat(41)}`]],
    [{ '': 'x', 'a/b~c': 1 }, ['/metadata/', '/metadata/a~1b~0c']],
    [{ 'a\0': 'x', 'b': '\0', 'c': FORGED_KEY }, ['/metadata/a\0', '/metadata/b', '/metadata/c']],
    [{ [FORGED_KEY]: 'x' }, ['/metadata/[redacted]']],
    ['{"__proto__":1,"constructor":2}', ['/metadata/__proto__', '/metadata/constructor']],
    [{ ...pairs(21), k0: 0 }, ['/metadata', '/metadata/k0']],
  ]
  for (const [metadata, errors] of members) {
    const body = typeof metadata === 'string'
      ? `${JSON.stringify(required).slice(0, -1)},"metadata":${metadata}}`
      : { ...required, metadata }
    const what = `metadata: ${JSON.stringify(metadata).slice(0, 60)}`
    expectProblem(t, await signUp(body), 'invalid_body', what, { errors })
  }
}

async function allErrorsReported(t: TestContext, service: Service): Promise<void> {
  const { root, world } = service
  const signUp = signUpAt(service)
  const wrong = { ...required, email: 0, other: 1, Name: 'x', [FORGED_KEY]: 1 }
  const errors = ['/email', '/other', '/Name', '/[redacted]']
  expectProblem(t, await signUp(wrong), 'invalid_body', 'unknown members', { errors })
  const withQuery = await signUp(wrong, { target: `${root}/partner/signups?x=1&partner=demo`, once: '' })
  expectInvalid(t, withQuery, ['Idempotency-Key', 'partner', 'x'], 'parameters are validated before the body')
  const hidden = await signUp({ ...required, profile: 'for-acme' })
  const absent = await signUp({ ...required, profile: 'for-abcd' })
  t.strictSame(hidden.json.errors, absent.json.errors, 'a hidden profile is reported like a missing one')
  const shared = { ...required, partner: 'acme', profile: 'for-acme' }
  t.equal(
    (await signUp(shared, { key: world.keys['acme full'] })).status,
    201,
    'the partner it is visible to may refer to it',
  )
  const read = await get(service, '/partner/signups?partner=demo')
  expectProblem(t, read, 'method_not_allowed', 'signups cannot be read')
  t.equal(read.headers.get('allow'), 'POST, OPTIONS')
}

async function idempotency(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const signUp = signUpAt(service)
  const replayed = (response: TestResponse): string | undefined => response.headers.get('idempotent-replayed')
  const first = await signUp(required, { once: 'one' })
  t.strictSame([first.status, replayed(first)], [201, undefined])
  const reordered = `{ "name": "Ada Lovelace",\n "email": "ada\\u0040example.com", "partner": "demo" }`
  for (const [body, once] of [[required, 'one'], [required, '"one"'], [reordered, 'one']] as const) {
    const again = await signUp(body, { once })
    t.strictSame([again.status, again.text, replayed(again)], [201, first.text, 'true'], once)
  }
  const other = await signUp({ ...required, name: 'Charles Babbage' }, { once: 'one' })
  expectProblem(t, other, 'idempotency_mismatch', 'another body')
  const idOf = (response: TestResponse): string => response.json.data.id
  const ids = [
    first,
    await signUp(required, { once: 'ONE' }),
    await signUp(required),
    await signUp(required),
    await signUp(required, { once: 'one', key: world.keys['demo test'] }),
    await signUp({ ...required, partner: 'acme' }, { once: 'one', key: world.keys['acme full'] }),
  ].map(idOf)
  t.equal(
    new Set(ids).size,
    ids.length,
    'other idempotency keys, environments and partners are stored separately',
  )

  expectProblem(
    t,
    await signUp({ ...required, email: 'ada' }, { once: 'two' }),
    'invalid_body',
    'an invalid signup',
  )
  const corrected = await signUp(required, { once: 'two' })
  t.strictSame(
    [corrected.status, replayed(corrected)],
    [201, undefined],
    'a refused signup does not use up its idempotency key',
  )

  const many = await Promise.all(Array.from({ length: 12 }, () => signUp(required, { once: 'many' })))
  const made = many.filter(({ status }) => status === 201)
  t.equal(new Set(made.map(idOf)).size, 1, 'of many concurrent signups, one is stored')
  t.equal(
    made.filter((response) => replayed(response) === undefined).length,
    1,
    'one response is not a replay',
  )
  for (const response of many.filter(({ status }) => status !== 201)) {
    expectProblem(t, response, 'idempotency_conflict', 'while the first is in progress')
  }
}

async function goneReferences(t: TestContext, service: Service): Promise<void> {
  const { lines, publish, remove } = service.world
  const signUp = signUpAt(service)
  const body = { ...required, plan: 'fleeting', profile: 'fleeting' }
  await publish('plans', [{ ...lines.plans[0], slug: 'fleeting' }])
  await publish('profiles', [{ ...lines.profiles[0], slug: 'fleeting', visible_to: null }])
  const first = await signUp(body, { once: 'gone' })
  t.equal(first.status, 201)
  await remove('plans', ['fleeting'])
  await remove('profiles', ['fleeting'])
  const again = await signUp(body, { once: 'gone' })
  t.strictSame([again.status, again.text], [201, first.text])
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  const other = await signUp({ ...body, name: 'Charles Babbage' }, { once: 'gone' })
  expectProblem(t, other, 'idempotency_mismatch', 'another body, before what it refers to')
  for (const once of ['not-gone', undefined]) {
    const errors = ['/plan', '/profile']
    expectProblem(
      t,
      await signUp(body, once === undefined ? {} : { once }),
      'invalid_body',
      'a first attempt',
      { errors },
    )
  }
  const shape = await signUp({ ...body, email: '' }, { once: 'gone' })
  expectProblem(t, shape, 'invalid_body', 'the shape comes first', {
    errors: ['/email', '/plan', '/profile'],
  })
}

async function idempotencyKeys(t: TestContext, service: Service): Promise<void> {
  const signUp = signUpAt(service)
  for (
    const once of ['x', 'x'.repeat(255), `"${'y'.repeat(253)}"`, 'a b', "it's", '~!@#', ',," z "', 'a"b"']
  ) {
    t.equal((await signUp(required, { once })).status, 201, once.slice(0, 20))
  }
  for (const once of ['', '""', 'x'.repeat(256), '"x', 'x"', '"', ',," z "\\"']) {
    const response = await signUp(required, { once })
    expectInvalid(t, response, ['Idempotency-Key'], `Idempotency-Key: ${once.slice(0, 20)}`)
  }
}

async function spentQuotas(t: TestContext, service: Service): Promise<void> {
  const limits = { key: { quota: 8, windowSeconds: 60 }, signup: { quota: 2, windowSeconds: 60 } }
  const key = await service.world.issue({ limits })
  const signUp = () => signUpAt(service)(required, { key })
  for (let count = 0; count < 2; count++) t.equal((await signUp()).status, 201)
  const response = await signUp()
  expectProblem(t, response, 'rate_limited', 'the third signup')
  const { headers } = response
  t.ok(
    /^"key";r=5;t=\d+, "signup";r=0;t=\d+$/.test(headers.get('ratelimit') ?? ''),
    'RateLimit names both policies',
  )
  t.equal(headers.get('ratelimit-policy'), '"key";q=8;w=60, "signup";q=2;w=60')
  t.ok(/^[1-9]\d*$/.test(headers.get('retry-after') ?? ''), 'Retry-After')
}
