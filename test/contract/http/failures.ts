/** Section 5, `authfail`: an address with too many failed credentials is limited, and how the address is determined. */
import { FENCE } from '../../support/world.ts'
import { expectProblem } from './expect.ts'
import { forge } from './forgery.ts'
import {
  get,
  post,
  type Service,
  type Suite,
  type TestContext,
  type TestRequest,
  type TestResponse,
  withKey,
} from './service.ts'

const quota = 3
const authfail = { quota, windowSeconds: 60 }
const plans = '/public/plans?partner=demo'

export const failures: readonly Suite[] = [
  {
    settings: { trustedProxies: 1, limits: { authfail } },
    tests: {
      'an address may fail as often as the quota allows': failuresUpToQuota,
      'concurrent failures are limited to the quota': concurrentFailures,
      'only failed credentials spend the quota': spendingCredentials,
      'a key that was used before passes from a limited address': knownKeys,
      'unparseable addresses share one quota': unparseableAddresses,
      'behind one proxy, the last forwarded address is the client': clientBehindOneProxy,
    },
  },
  {
    settings: { trustedProxies: 2 },
    tests: { 'behind two proxies, the address before the last is the client': clientBehindTwoProxies },
  },
  { tests: { 'without a proxy, forwarded addresses are ignored': forwardedWithoutProxy } },
  {
    settings: { limits: { authfail } },
    tests: {
      async 'without a proxy, the address of the socket counts'(t, service) {
        for (let count = 0; count <= quota; count++) {
          const headers = { 'x-forwarded-for': `192.0.2.${count}` }
          const response = await get(service, plans, { key: { text: unknownKey(count) }, headers })
          expectProblem(t, response, count < quota ? 'key_invalid' : 'rate_limited', `failure ${count + 1}`)
        }
      },
    },
  },
]

/** A key with a valid checksum and an id that was never issued. */
function unknownKey(count: number): string {
  return forge('spk_live', `Nobody${String(count).padStart(6, '0')}`)
}

function from(address: string): { readonly 'x-forwarded-for': string } {
  return { 'x-forwarded-for': address }
}

async function failAt(service: Service, address: string, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    await get(service, plans, { key: { text: unknownKey(count) }, headers: from(address) })
  }
}

async function failuresUpToQuota(t: TestContext, service: Service): Promise<void> {
  const request = (count: number, address: string) =>
    get(service, plans, { key: { text: unknownKey(count) }, headers: from(address) })
  for (let count = 0; count < quota; count++) {
    expectProblem(t, await request(count, '192.0.2.1'), 'key_invalid', `failure ${count + 1}`)
  }
  const response = await request(9, '192.0.2.1')
  expectProblem(t, response, 'rate_limited', 'after the quota, the address is limited')
  const retry = Number(response.headers.get('retry-after'))
  t.ok(Number.isInteger(retry) && retry >= 1 && retry <= 60, 'Retry-After')
  t.equal(response.headers.get('www-authenticate'), undefined, 'a 429 has no challenge')
  expectProblem(t, await request(9, '192.0.2.2'), 'key_invalid', 'another address is not limited')
  const failing = { key: { text: unknownKey(1) }, headers: from('192.0.2.1') }
  const posted = await post(service, '{"partner":"demo"}', failing)
  expectProblem(t, posted, 'rate_limited', 'the limit applies to every endpoint')
}

async function concurrentFailures(t: TestContext, service: Service): Promise<void> {
  const keys: { readonly text: string }[] = []
  while (keys.length < 8) keys.push(await service.world.issue({}))
  const statuses = async (keys: readonly { readonly text: string }[], address: string) => {
    const responses = await Promise.all(
      keys.map((key) => get(service, plans, { key, headers: from(address) })),
    )
    return responses.map(({ status }) => status).toSorted()
  }
  const forged = Array.from({ length: 40 }, (_, count) => ({ text: unknownKey(count) }))
  const expected = [...Array(quota).fill(401), ...Array(40 - quota).fill(429)]
  t.strictSame(
    await statuses(keys, '192.0.2.3'),
    Array(8).fill(200),
    'valid keys pass, more than the quota of failures',
  )
  t.strictSame(await statuses(forged, '192.0.2.3'), expected, 'of the invalid keys, the quota gets 401')
}

async function spendingCredentials(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const credential = (text: string): NonNullable<TestRequest['headers']> => ({
    'x-service-partner-key': text,
  })
  const cases: readonly [string, boolean, NonNullable<TestRequest['headers']>][] = [
    ['an unknown key', true, credential(unknownKey(1))],
    ['a malformed one', true, credential('nonsense')],
    ['a wrong secret', true, credential(forge('spk_live', world.keys['demo full'].id))],
    ['a revoked key', true, withKey(world.keys['demo revoked'])],
    ['an expired key', true, withKey(world.keys['demo expired'])],
    ['a disabled key', true, withKey(world.keys['demo disabled'])],
    ['two credentials', true, { ...credential('nonsense'), authorization: 'Bearer other' }],
    ['no credential', false, {}],
    ['another scheme', false, { authorization: 'Basic c3RhZ2luZzpzZWNyZXQ=' }],
    ['a key with an allow-list that excludes the address', false, withKey(world.keys['demo fenced'])],
    ['another partner’s key', false, withKey(world.keys['acme full'])],
    ['a key without the scope', false, withKey(world.keys['demo powerless'])],
  ]
  let last = 10
  for (const [what, spends, headers] of cases) {
    const address = from(`192.0.2.${last++}`)
    const request = (more: NonNullable<TestRequest['headers']>): Promise<TestResponse> =>
      service.send({ target: service.root + plans, headers: { ...more, ...address } })
    for (let count = 0; count < quota; count++) {
      t.ok((await request(headers)).status !== 429, `${what} is not limited ${count + 1} times`)
    }
    const probe = await request(credential(unknownKey(2)))
    expectProblem(t, probe, spends ? 'rate_limited' : 'key_invalid', what)
    const missing = await request({})
    expectProblem(t, missing, 'key_missing', 'a missing key is never limited')
  }
}

async function knownKeys(t: TestContext, service: Service): Promise<void> {
  const { world } = service
  const address = from('192.0.2.99')
  const good = await world.issue({})
  const later = await world.issue({})
  const request = (key: { readonly text: string }, path = plans) =>
    get(service, path, { key, headers: address })
  t.equal((await request(good)).status, 200, 'the first use succeeds')
  await failAt(service, '192.0.2.99', quota)
  for (let count = 0; count < 5; count++) t.equal((await request(good)).status, 200, 'it still passes')
  expectProblem(t, await request(later), 'rate_limited', 'a valid key that was never used is limited')
  const guess = await request({ text: forge('spk_live', good.id) })
  expectProblem(t, guess, 'rate_limited', 'a guess at the known key is limited')
  const both = { authorization: `Bearer ${good.text}`, ...address }
  t.equal(
    (await get(service, plans, { key: good, headers: both })).status,
    200,
    'the known key in both header fields passes',
  )
  const verified = await post(service, '{"partner":"demo"}', { key: good, headers: address })
  const limits: readonly { policy: string; remaining: number }[] = verified.json.data.limits
  t.equal(limits.find(({ policy }) => policy === 'authfail')?.remaining, 0)
  const elsewhere = await get(service, plans, { key: later, headers: from('192.0.2.98') })
  t.equal(elsewhere.status, 200, 'from another address the unused key passes')
  t.equal((await request(later)).status, 200, 'once used, it passes from the limited address')
  await world.keyRing.revoke(good.id)
  t.ok((await request(good)).status >= 400, 'a known key does not pass once it is revoked')
}

async function unparseableAddresses(t: TestContext, service: Service): Promise<void> {
  const request = (address: string) =>
    get(service, plans, { key: { text: unknownKey(0) }, headers: from(address) })
  for (const address of ['nonsense', 'fe80:::1', '192.0.2.300', '']) {
    const isOver = address === ''
    expectProblem(t, await request(address), isOver ? 'rate_limited' : 'key_invalid', `from "${address}"`)
  }
  expectProblem(t, await request('192.0.2.97'), 'key_invalid', 'parseable addresses do not share it')
}

/** Sends the key that may only be used inside `FENCE`. */
function getWithAllowedAddress(
  service: Service,
  forwarded: string | readonly string[] | undefined,
): Promise<TestResponse> {
  const headers: NonNullable<TestRequest['headers']> = forwarded === undefined
    ? {}
    : { 'x-forwarded-for': forwarded }
  return get(service, plans, { key: service.world.keys['demo fenced'], headers })
}

async function clientBehindOneProxy(t: TestContext, service: Service): Promise<void> {
  const { inside, outside } = FENCE
  const passing = [inside, ` ${inside} `, `${outside}, ${inside}`, `nonsense,${inside}`, `${inside}:4711`]
  for (const value of passing) {
    t.equal((await getWithAllowedAddress(service, value)).status, 200, `X-Forwarded-For: ${value}`)
  }
  const refused = [outside, `${inside}, ${outside}`, `${inside},nonsense`, 'nonsense', `${inside},`, '']
  for (const value of refused) {
    expectProblem(
      t,
      await getWithAllowedAddress(service, value),
      'address_not_allowed',
      `X-Forwarded-For: ${value}`,
    )
  }
  t.equal(
    (await getWithAllowedAddress(service, [outside, inside])).status,
    200,
    'the last of two fields counts',
  )
  expectProblem(
    t,
    await getWithAllowedAddress(service, [inside, outside]),
    'address_not_allowed',
    'the first of two fields does not',
  )
  const allow = ['2001:db8:7::/48', '192.0.2.8', 'fe80::/10']
  const key = await service.world.issue({ allow })
  const addresses = {
    '2001:db8:7::1': 200,
    '[2001:DB8:7:0::9]:443': 200,
    '2001:db8:8::1': 403,
    '192.0.2.8': 200,
    '192.0.2.9': 403,
    'fe80::1%eth0': 200,
    '[fe80::1%25eth0]:443': 200,
    'fec0::1%1': 403,
  }
  for (const [address, status] of Object.entries(addresses)) {
    t.equal((await get(service, plans, { key, headers: from(address) })).status, status, address)
  }
  const mapped = await getWithAllowedAddress(service, `::ffff:${inside}`)
  t.equal(mapped.status, 200, 'an IPv4 address in IPv6 form is the same address')
}

async function clientBehindTwoProxies(t: TestContext, service: Service): Promise<void> {
  const { inside, outside } = FENCE
  for (const value of [`${inside}, 10.0.0.1`, `${outside}, ${inside}, 10.0.0.1`]) {
    t.equal((await getWithAllowedAddress(service, value)).status, 200, `X-Forwarded-For: ${value}`)
  }
  for (const value of [`${outside}, 10.0.0.1`, `${inside}, ${outside}, 10.0.0.1`, `${outside}, ${inside}`]) {
    expectProblem(
      t,
      await getWithAllowedAddress(service, value),
      'address_not_allowed',
      `X-Forwarded-For: ${value}`,
    )
  }
}

async function forwardedWithoutProxy(t: TestContext, service: Service): Promise<void> {
  for (const value of [undefined, FENCE.inside, `${FENCE.inside}, ${FENCE.inside}`]) {
    expectProblem(
      t,
      await getWithAllowedAddress(service, value),
      'address_not_allowed',
      `X-Forwarded-For: ${value}`,
    )
  }
  for (const forwarded of ['forwarded', 'x-real-ip', 'cf-connecting-ip', 'x-client-ip']) {
    const headers = { [forwarded]: forwarded === 'forwarded' ? `for=${FENCE.inside}` : FENCE.inside }
    const response = await get(service, plans, { key: service.world.keys['demo fenced'], headers })
    expectProblem(t, response, 'address_not_allowed', forwarded)
  }
  const local = await get(service, plans, { key: service.world.keys['demo local'] })
  t.equal(local.status, 200, 'the address of the socket counts')
}
