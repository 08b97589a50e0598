/** Section 4: a form is sent once, whatever becomes of the connection. */
import { FORGED_KEY, pairs, REFUSED, TAKEN } from './signup-fields.ts'
import { expectInvalid, expectProblem } from './expect.ts'
import { type Ask, get, type Heard, post, type Service, type Suite, type Tester } from './service.ts'

const required = { partner: 'demo', email: 'ada@example.com', name: 'Ada Lovelace' }

interface More extends Partial<Ask> {
  readonly key?: { readonly text: string }
  /** What makes it safe to repeat. */
  readonly once?: string
}

type SignUp = (body: object | string, more?: More) => Promise<Heard>

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
    'each field has its rule': fields,
    'all failures at once': failures,
    'repeated signups are stored once': idempotency,
    'the form of Idempotency-Key': idempotencyKeys,
    'both quotas are spent, and the smaller one refuses': quotas,
  },
}]

/** One body for each round, with a value of every field that has one left: all failures are reported at once. */
function rounds(fields: typeof TAKEN): object[] {
  const most = Math.max(...fields.map(([, values]) => values.length))
  return Array.from({ length: most }, (_, round) =>
    Object.fromEntries(
      fields.filter(([, values]) => round < values.length).map(([field, values]) => [field, values[round]]),
    ))
}

async function fields(t: Tester, service: Service): Promise<void> {
  const signUp = signUpAt(service)
  for (const body of rounds(TAKEN)) {
    const heard = await signUp({ ...required, ...body })
    t.equal(heard.status, 201, JSON.stringify(body).slice(0, 200))
    const { id, status, created_at: createdAt, ...rest } = heard.json.data
    t.strictSame([status, rest], ['received', {}])
    t.ok(/^sgn_[0-9A-Za-z]+$/.test(id), id)
    t.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000, createdAt)
  }
  for (const body of rounds(REFUSED)) {
    const errors = Object.keys(body).map((field) => `/${field}`)
    // What reads the test's name takes some white space for the end of its line.
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

async function failures(t: Tester, service: Service): Promise<void> {
  const { root, world } = service
  const signUp = signUpAt(service)
  const wrong = { ...required, email: 0, other: 1, Name: 'x', [FORGED_KEY]: 1 }
  const errors = ['/email', '/other', '/Name', '/[redacted]']
  expectProblem(t, await signUp(wrong), 'invalid_body', 'unknown members', { errors })
  const asked = await signUp(wrong, { target: `${root}/partner/signups?x=1&partner=demo`, once: '' })
  expectInvalid(t, asked, ['Idempotency-Key', 'partner', 'x'], 'parameters come before the body')
  const hidden = await signUp({ ...required, profile: 'for-acme' })
  const absent = await signUp({ ...required, profile: 'for-abcd' })
  t.strictSame(hidden.json.errors, absent.json.errors, 'a hidden profile is as one that does not exist')
  const shared = { ...required, partner: 'acme', profile: 'for-acme' }
  t.equal((await signUp(shared, { key: world.keys['acme full'] })).status, 201, 'for whom it is shared with')
  const read = await get(service, '/partner/signups?partner=demo')
  expectProblem(t, read, 'method_not_allowed', 'signups cannot be read')
  t.equal(read.headers.get('allow'), 'POST, OPTIONS')
}

async function idempotency(t: Tester, service: Service): Promise<void> {
  const { world } = service
  const signUp = signUpAt(service)
  const replayed = (heard: Heard): string | undefined => heard.headers.get('idempotent-replayed')
  const first = await signUp(required, { once: 'one' })
  t.strictSame([first.status, replayed(first)], [201, undefined])
  const reordered = `{ "name": "Ada Lovelace",\n "email": "ada\\u0040example.com", "partner": "demo" }`
  for (const [body, once] of [[required, 'one'], [required, '"one"'], [reordered, 'one']] as const) {
    const again = await signUp(body, { once })
    t.strictSame([again.status, again.text, replayed(again)], [201, first.text, 'true'], once)
  }
  const other = await signUp({ ...required, name: 'Charles Babbage' }, { once: 'one' })
  expectProblem(t, other, 'idempotency_mismatch', 'another body')
  const idOf = (heard: Heard): string => heard.json.data.id
  const ids = [
    first,
    await signUp(required, { once: 'ONE' }),
    await signUp(required),
    await signUp(required),
    await signUp(required, { once: 'one', key: world.keys['demo test'] }),
    await signUp({ ...required, partner: 'acme' }, { once: 'one', key: world.keys['acme full'] }),
  ].map(idOf)
  t.equal(new Set(ids).size, ids.length, 'what is not the same is kept for itself')

  expectProblem(t, await signUp({ ...required, email: 'ada' }, { once: 'two' }), 'invalid_body', 'refused')
  const corrected = await signUp(required, { once: 'two' })
  t.strictSame([corrected.status, replayed(corrected)], [201, undefined], 'a refusal is not kept')

  const many = await Promise.all(Array.from({ length: 12 }, () => signUp(required, { once: 'many' })))
  const made = many.filter(({ status }) => status === 201)
  t.equal(new Set(made.map(idOf)).size, 1, 'of many at once, one is kept')
  t.equal(made.filter((heard) => replayed(heard) === undefined).length, 1, 'and one made it')
  for (const heard of many.filter(({ status }) => status !== 201)) {
    expectProblem(t, heard, 'idempotency_conflict', 'while the first is worked on')
  }
}

async function idempotencyKeys(t: Tester, service: Service): Promise<void> {
  const signUp = signUpAt(service)
  for (const once of ['x', 'x'.repeat(255), `"${'y'.repeat(253)}"`, 'a b', "it's", '~!@#']) {
    t.equal((await signUp(required, { once })).status, 201, once.slice(0, 20))
  }
  for (const once of ['', '""', 'x'.repeat(256), '"x', 'x"', '"']) {
    const heard = await signUp(required, { once })
    expectInvalid(t, heard, ['Idempotency-Key'], `Idempotency-Key: ${once.slice(0, 20)}`)
  }
}

async function quotas(t: Tester, service: Service): Promise<void> {
  const limits = { key: { quota: 8, windowSeconds: 60 }, signup: { quota: 2, windowSeconds: 60 } }
  const key = await service.world.issue({ limits })
  const signUp = () => signUpAt(service)(required, { key })
  for (let count = 0; count < 2; count++) t.equal((await signUp()).status, 201)
  const heard = await signUp()
  expectProblem(t, heard, 'rate_limited', 'the third')
  const { headers } = heard
  t.ok(/^"key";r=5;t=\d+, "signup";r=0;t=\d+$/.test(headers.get('ratelimit') ?? ''), 'RateLimit has both')
  t.ok(/^[1-9]\d*$/.test(headers.get('retry-after') ?? ''), 'Retry-After')
}
