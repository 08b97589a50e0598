/** Section 13: partners rotate and revoke their own keys. */
import type { NewKey } from '../../../core/admin/key-plans.ts'
import type { Key } from '../../../core/model.ts'
import type { TestKey } from '../../support/world.ts'
import { expectProblem } from './expect.ts'
import {
  get,
  type Service,
  type Suite,
  type TestContext,
  type TestResponse,
  until,
  withKey,
} from './service.ts'

export const selfService: readonly Suite[] = [{
  tests: {
    'a rotation returns a successor, and the old key works through its overlap': rotation,
    'the successor inherits allow-list, limits, expiry and scopes': inheritance,
    'an overlap is 0 to 604,800 whole seconds': overlaps,
    'a key whose successor was never used gets another one': lostAnswer,
    'a key whose successor was used gets no other': usedSuccessor,
    'a successor that the operator has changed is not replaced': changedSuccessor,
    'three keys of a chain are in force': chain,
    'a successor has no more than its former successor and its key': cutKey,
    'a partner does only what it may do itself': notAllowed,
    'a revoked key is refused': revocation,
  },
}, {
  settings: { limits: {} },
  tests: { 'the keys of a partner are rotated twenty times in an hour': quota },
}]

const DAY = 86_400_000
let serial = 0

/** A key of a new partner that may do both. */
async function createKey(
  { world }: Service,
  more: Partial<NewKey> = {},
  selfService: readonly ('rotate' | 'revoke')[] = ['rotate', 'revoke'],
): Promise<TestKey & { readonly partner: string }> {
  const partner = `self-service-${++serial}`
  await world.partners.create({ slug: partner, name: partner, modules: ['pricing', 'banner'], selfService })
  return { ...await world.issue({ ...more, partner }), partner }
}

interface Sender {
  readonly text: string
  readonly partner: string
}

function send(
  service: Service,
  action: string,
  { text, partner }: Sender,
  members = {},
): Promise<TestResponse> {
  return service.send({
    method: 'POST',
    target: `${service.root}/developer/${action}-key`,
    headers: { ...withKey({ text }), 'content-type': 'application/json' },
    body: JSON.stringify({ partner, ...members }),
  })
}

const readPlans = (service: Service, sender: Sender): Promise<TestResponse> =>
  get(service, `/public/plans?partner=${sender.partner}`, { key: sender })

const plans = async (service: Service, sender: Sender): Promise<unknown> => {
  const { status, json } = await readPlans(service, sender)
  return status === 200 ? 200 : json.code
}

async function rotation(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const before = Date.now()
  const { status, headers, json } = await send(service, 'rotate', key)
  const { id, key: text, predecessor: { ends_at: endsAt, ...predecessor }, ...rest } = json.data
  t.equal(status, 201)
  t.equal(headers.get('cache-control'), 'private, no-store')
  t.strictSame(Object.keys(json), ['data'])
  t.strictSame(predecessor, { id: key.id })
  t.ok(Date.parse(endsAt) >= before + DAY - 60_000 && Date.parse(endsAt) <= Date.now() + DAY + 60_000, endsAt)
  t.strictSame(rest, {
    hint: `…${text.slice(-4)}`,
    environment: 'live',
    scopes: ['read:banner', 'read:plans'],
    expires_at: null,
  })
  t.ok(text.includes(id) && text !== key.text && id !== key.id, 'another key')
  t.strictSame([await plans(service, key), await plans(service, { ...key, text })], [200, 200])
  t.equal((await send(service, 'rotate', { ...key, text })).status, 201, 'a successor is rotated, too')
}

async function inheritance(t: TestContext, service: Service): Promise<void> {
  const given = {
    environment: 'test',
    name: 'Shop',
    scopes: ['read:plans'],
    allow: ['0.0.0.0/0', '::/0'],
    limits: { key: { quota: 77, windowSeconds: 30 } },
    expiresAt: Date.now() + 3 * DAY,
  } as const
  const key = await createKey(service, given)
  const { json: { data } } = await send(service, 'rotate', key, { overlap_seconds: 604_800 })
  const successor: Key = await service.world.keyRing.show(data.id)
  const { environment, name, scopes, allow, limits, expiresAt } = successor
  t.strictSame({ environment, name, scopes, allow, limits, expiresAt }, given)
  t.strictSame([data.environment, data.scopes], ['test', ['read:plans']])
  t.equal(data.expires_at, new Date(given.expiresAt).toISOString())
  t.equal(data.predecessor.ends_at, data.expires_at, 'the overlap ends no later than the key')
}

async function overlaps(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  for (const wrong of [-1, 604_801, 1.5, '60', true, [], {}]) {
    const response = await send(service, 'rotate', key, { overlap_seconds: wrong })
    expectProblem(t, response, 'invalid_body', JSON.stringify(wrong), { errors: ['/overlap_seconds'] })
  }
  expectProblem(t, await send(service, 'rotate', key, { other: 1 }), 'invalid_body', 'another member')
  t.equal((await service.world.keyRing.show(key.id)).successorId, undefined, 'nothing has changed')
  const { json: { data } } = await send(service, 'rotate', key, { overlap_seconds: null })
  t.ok(Date.parse(data.predecessor.ends_at) > Date.now() + DAY - 60_000, 'null is the default')
  const ending = await createKey(service)
  t.equal((await send(service, 'rotate', ending, { overlap_seconds: 0 })).status, 201)
  await until(() => readPlans(service, ending), ({ json }) => json.code === 'key_expired')
}

async function lostAnswer(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const [lost, found] = [
    await send(service, 'rotate', key, { overlap_seconds: 3_600 }),
    await send(service, 'rotate', key, { overlap_seconds: 7_200 }),
  ].map(({ json }) => json.data)
  t.ok(found.id !== lost.id, 'another successor')
  t.equal(found.predecessor.ends_at, lost.predecessor.ends_at, 'the overlap is not extended')
  t.equal(await plans(service, { ...key, text: found.key }), 200)
  t.equal(await plans(service, { ...key, text: lost.key }), 200, 'it works until the key itself ends')
  const [old, former] = await Promise.all([key.id, lost.id].map(service.world.keyRing.show))
  t.equal(old!.successorId, found.id)
  t.equal(former!.retiresAt, old!.retiresAt)
}

async function usedSuccessor(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const { json: { data } } = await send(service, 'rotate', key)
  t.equal(await plans(service, { ...key, text: data.key }), 200)
  expectProblem(t, await send(service, 'rotate', key), 'rotation_conflict', 'used a moment ago')
  t.strictSame([await plans(service, key), await plans(service, { ...key, text: data.key })], [200, 200])
}

async function changedSuccessor(t: TestContext, service: Service): Promise<void> {
  const { keyRing } = service.world
  for (const change of ['revoke', 'disable', 'rotate'] as const) {
    const key = await createKey(service)
    const { json: { data } } = await send(service, 'rotate', key)
    await keyRing[change](data.id)
    expectProblem(t, await send(service, 'rotate', key), 'rotation_conflict', change)
  }
}

async function chain(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const made = []
  for (let round = 0; round < 4; round++) made.push((await send(service, 'rotate', key)).json.data)
  const works = await Promise.all(made.map((each) => plans(service, { ...key, text: each.key })))
  t.strictSame(works, ['key_revoked', 'key_revoked', 200, 200], 'with the key itself, three')
  expectProblem(
    t,
    await send(service, 'rotate', { ...key, text: made[3].key }),
    'rotation_conflict',
    'all are used',
  )
  const last = await send(service, 'rotate', { ...key, text: made[3].key }, { overlap_seconds: 0 })
  t.equal(last.status, 201, 'without an overlap, the key ends')
}

async function cutKey(t: TestContext, service: Service): Promise<void> {
  const { keyRing } = service.world
  const key = await createKey(service, { allow: ['0.0.0.0/0', '::/0'] })
  await send(service, 'rotate', key)
  await keyRing.remove(key.id, ['read:banner'])
  const expiresAt = Date.now() + DAY
  const limits = { key: { quota: 50, windowSeconds: 60 } }
  const allow = ['127.0.0.0/8', '::/0']
  await keyRing.update(key.id, { expiresAt, allow, limits: { set: limits } })
  const { status, json: { data } } = await send(service, 'rotate', key)
  t.equal(status, 201)
  t.strictSame(data.scopes, ['read:plans'])
  t.equal(data.expires_at, new Date(expiresAt).toISOString())
  const successor = await keyRing.show(data.id)
  t.strictSame([successor.allow, successor.limits, successor.predecessorId], [allow, limits, key.id])
  const wide = { key: { quota: 50, windowSeconds: 120 } }
  await keyRing.update(key.id, { limits: { set: wide } })
  expectProblem(t, await send(service, 'rotate', key), 'rotation_conflict', 'limits with different windows')
}

async function notAllowed(t: TestContext, service: Service): Promise<void> {
  for (const allowed of [[], ['rotate'], ['revoke']] as const) {
    const key = await createKey(service, {}, allowed)
    for (const action of ['rotate', 'revoke'] as const) {
      const response = await send(service, action, key)
      const isAllowed = (allowed as readonly string[]).includes(action)
      if (isAllowed) t.ok(response.status < 300, `${action}: ${response.status}`)
      else expectProblem(t, response, 'self_service_disabled', `${action} of [${allowed}]`)
    }
  }
  const key = await createKey(service)
  await service.world.partners.update(key.partner, { selfService: [] })
  const response = () => send(service, 'rotate', key, { overlap_seconds: -1 })
  await until(response, ({ json }) => json.code === 'self_service_disabled')
}

async function revocation(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const { json: { data: successor } } = await send(service, 'rotate', key)
  const { status, headers, json } = await send(service, 'revoke', key)
  t.equal(status, 200)
  t.equal(headers.get('cache-control'), 'private, no-store')
  const { revoked_at: revokedAt, ...rest } = json.data
  t.strictSame(rest, { id: key.id, state: 'revoked' })
  t.ok(Math.abs(Date.parse(revokedAt) - Date.now()) < 60_000, revokedAt)
  await until(() => readPlans(service, key), ({ json }) => json.code === 'key_revoked')
  expectProblem(t, await send(service, 'revoke', key), 'key_revoked', 'again')
  t.equal(await plans(service, { ...key, text: successor.key }), 200, 'its successor works')
}

async function quota(t: TestContext, service: Service): Promise<void> {
  const key = await createKey(service)
  const limits = async (sender: Sender) => {
    const { json: { data } } = await send(service, 'verify', sender)
    return data.limits.map(({ policy }: { policy: string }) => policy).join()
  }
  t.equal(await limits(await createKey(service, {}, ['revoke'])), 'key,signup,verify,authfail')
  t.equal(await limits(key), 'key,signup,verify,rotate,authfail', 'verify-key shows it if it is allowed')
  let sender: Sender = key
  for (let remaining = 19; remaining >= 0; remaining--) {
    const { status, headers, json } = await send(service, 'rotate', sender, { overlap_seconds: 0 })
    t.equal(status, 201)
    t.equal(headers.get('ratelimit-policy'), '"rotate";q=20;w=3600')
    t.equal(headers.get('ratelimit')?.split(';t=')[0], `"rotate";r=${remaining}`)
    sender = { ...key, text: json.data.key }
  }
  expectProblem(t, await send(service, 'rotate', sender), 'rate_limited', 'the twenty-first')
  const other = { ...key, ...await service.world.issue({ partner: key.partner }) }
  expectProblem(t, await send(service, 'rotate', other), 'rate_limited', 'another key of the partner')
  const { status, headers } = await send(service, 'revoke', sender)
  t.equal(status, 200, 'a revocation is not limited by it')
  t.equal(headers.get('ratelimit-policy'), '"key";q=600;w=60')
  const own = await createKey(service)
  const limit = { rotate: { quota: 1, windowSeconds: 3_600 } }
  await service.world.partners.update(own.partner, { limits: { set: limit } })
  await until(() => send(service, 'verify', own), ({ json }) => json.data.limits[3].quota === 1)
}
