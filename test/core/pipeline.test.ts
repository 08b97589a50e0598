/** What the steps of a request leave to see besides its response, and what they do in an order that few requests reach. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { createPartnerApi, type PartnerApi } from '../../core/api.ts'
import type { HttpRequest, HttpResponse } from '../../core/http/message.ts'
import { createLocalLimiter } from '../../core/limits/limiter.ts'
import type { CompletedRequest } from '../../core/ports/observer.ts'
import type { QuotaStore } from '../../core/ports/quotas.ts'
import type { Store } from '../../core/ports/store.ts'
import type { PartnerApiOptions } from '../../core/settings.ts'
import type { Verification } from '../../core/wire.ts'
import { forge } from '../contract/http/forgery.ts'
import { FAR_LIMITS } from '../contract/http/service.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createPartner } from '../support/partner.ts'

const plans = '/service/public/plans?partner=acme'
const forged = (n: number) => forge('spk_live', `Nobody${String(n).padStart(6, '0')}`)

/** Quotas that answer asynchronously, as over a network. */
function createQuotas(): QuotaStore {
  const ledger = createLocalLimiter()
  return {
    sharesLimits: true,
    leastWindowSeconds: 1,
    async leaseQuota({ policy: name, subject, quota, windowSeconds, wanted }) {
      await setImmediate()
      const policy = { name, quota, windowSeconds, field: '' }
      let granted = 0
      while (granted < wanted && ledger.consume(policy, subject, 0).allowed) granted++
      return { granted, remaining: ledger.peek(policy, subject, 0).remaining, resetMs: 600_000, term: 1 }
    },
    returnQuotas: () => undefined,
  }
}

async function deploy(options: PartnerApiOptions = {}, change: (store: Store) => Store = (store) => store) {
  const memory = await openMemoryStore()
  const { keys, issue } = await createPartner(memory)
  const { key: { id }, text: key } = await issue()
  const api = createPartnerApi({ store: change(memory) }, {
    limits: FAR_LIMITS,
    maxStalenessMs: 10_000,
    storeTimeoutMs: 60_000,
    ...options,
  })
  return { api, key, id, keys, issue }
}

function send(
  api: PartnerApi,
  target: string,
  key?: string,
  more: Partial<HttpRequest> = {},
): HttpResponse | Promise<HttpResponse> {
  return api.handle({
    method: 'GET',
    target,
    header: (name) => name === 'x-service-partner-key' ? key : undefined,
    body: () => new Uint8Array(),
    address: '192.0.2.1',
    ...more,
  })
}

const problemOf = async (response: HttpResponse | Promise<HttpResponse>) =>
  JSON.parse(String((await response).body))

t.test('a target that is no path, and one of the server as a whole', async (t) => {
  const { api } = await deploy()
  const options = await send(api, '*', undefined, { method: 'OPTIONS' })
  t.match(options, { status: 204, headers: ['Allow', 'GET, HEAD, POST, OPTIONS'] })
  t.match(await send(api, '/service/health', undefined, { method: 'OPTIONS' }), {
    headers: ['Allow', 'GET, HEAD, OPTIONS'],
  })
  for (const target of ['*', 'a', '?a']) {
    t.match(await problemOf(send(api, target)), { code: 'route_not_found', instance: '/' }, target)
  }
  t.match(await problemOf(send(api, '/*', undefined, { method: 'OPTIONS' })), { code: 'route_not_found' })
  for (const [method, target] of [['CONNECT', '/service/health'], ['GET', '/service/health#']] as const) {
    t.match(await problemOf(send(api, target, undefined, { method })), { code: 'malformed_request' })
  }
  t.match(await problemOf(send(api, '/service/health?a=1&partner=acme')), {
    code: 'invalid_parameter',
    errors: [{ parameter: 'a' }, { parameter: 'partner' }],
  })
})

t.test('a request without a key says where one was found', async (t) => {
  const { api, key } = await deploy()
  const inUrl =
    /^A key in the URL is not read, and is in logs now: have it replaced\. Send the key in X-Service-/
  for (const query of ['api_key=1', 'Token=1', `a=b&a=${key}`, `a=${key}`, `b&${key}`]) {
    t.match(await problemOf(send(api, `${plans}&${query}`)), { code: 'key_missing', detail: inUrl }, query)
  }
  const { detail } = await problemOf(send(api, `${plans}&keys=1&tokens=2&c`))
  t.equal(detail, 'The request carries no key.')
})

t.test('an observer gets each request once, and what became of it', async (t) => {
  const completed: CompletedRequest[] = []
  const calls: string[] = []
  let observed = 0
  const { api, key, issue } = await deploy({
    maxStalenessMs: 0,
    observers: [{
      request: (_, handle) => (observed++, handle()),
      requestCompleted: (request) => void completed.push(request),
      storeCall: (operation, call) => (calls.push(operation), call()),
    }],
  })
  const last = async (target: string, secret?: string) => {
    await send(api, target, secret)
    return completed.at(-1)!
  }
  const route = { name: 'plans', path: '/service/public/plans' }
  for (const responseCache of ['miss', 'miss', 'hit', 'hit'] as const) {
    t.match(await last(plans, key), { status: 200, route, partner: 'acme', responseCache, code: undefined })
  }
  await issue()
  t.match(await last(plans, key), { responseCache: 'hit' }, 'plans do not depend on keys')
  const profiles = plans.replace('plans', 'profiles')
  for (let time = 0; time < 3; time++) await last(profiles, key)
  t.match(await last(profiles, key), { responseCache: 'hit' })
  for (const target of ['/service/health', '/service/partner/reports/activity?partner=acme']) {
    for (let time = 0; time < 3; time++) {
      const { status, responseCache } = await last(target, key)
      t.strictSame([status, responseCache], [200, undefined], target)
    }
  }
  t.equal(calls.filter((operation) => operation === 'listActivity').length, 3, 'a report is made anew')
  const refused = await last(plans)
  t.match(refused, { status: 401, code: 'key_missing', route })
  t.strictSame([refused.responseCache, refused.partner], [undefined, undefined])
  t.match(await last(`${plans}&a=1`, key), {
    status: 400,
    code: 'invalid_parameter',
    responseCache: undefined,
  })
  const lost = await last('/service/nothing', key)
  t.strictSame([lost.code, lost.route, lost.responseCache], ['route_not_found', undefined, undefined])
  await send(api, plans, key, {
    header: () => {
      throw new Error('reset')
    },
  })
  t.match(completed.at(-1), { status: 500, code: 'internal' })
  t.equal(observed, completed.length)
  t.ok(completed.every(({ durationMs }) => durationMs >= 0 && durationMs <= performance.now()))
})

t.test('a document is made once, also for requests that wait for it', async (t) => {
  const { api } = await deploy()
  const openapi = '/service/openapi.json'
  const [first, second] = await Promise.all([send(api, openapi), send(api, openapi)])
  t.equal(first.status, 200)
  t.equal(second.body, first.body)
  const third = send(api, openapi)
  t.notOk(third instanceof Promise, 'later requests do not wait')
  t.equal((await third).body, first.body)
})

await t.test('an address that takes long to read is read for verify-key once failures are counted', async (t) => {
  const header = (name: string) => name === 'content-type' ? 'application/json' : undefined
  async function check(api: PartnerApi, key: string) {
    let reads = 0
    const { body } = await api.handle({
      method: 'POST',
      target: '/service/developer/verify-key',
      header: (name) => name === 'x-service-partner-key' ? key : header(name),
      body: () => new TextEncoder().encode('{"partner":"acme"}'),
      get address() {
        reads++
        return '192.0.2.1'
      },
      hasAddress: true,
    })
    const { data: { limits } } = JSON.parse(String(body)) as { data: Verification }
    return { reads, left: limits.find(({ policy }) => policy === 'authfail')?.remaining }
  }
  const limits = { ...FAR_LIMITS, authfail: { quota: 20, windowSeconds: 60 } }
  const { api, key } = await deploy({ limits })
  t.match(await check(api, key), { reads: Number, left: 20 }, 'the key is looked up')
  t.same(await check(api, key), { reads: 0, left: 20 })
  t.equal((await send(api, plans, forged(1))).status, 401)
  t.match(await check(api, key), { reads: 1, left: 19 })

  const shared = await deploy({ limits }, (store) => ({ ...store, quotas: createQuotas() }))
  await check(shared.api, shared.key)
  t.match(await check(shared.api, shared.key), { reads: 1, left: 20 }, 'others may have counted some')
  const proxied = await deploy({ limits, trustedProxies: 1 })
  await check(proxied.api, proxied.key)
  t.match(await check(proxied.api, proxied.key), { reads: 1, left: 20 }, 'a proxy names another one')
})
